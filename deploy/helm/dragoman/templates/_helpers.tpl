{{/* What names of objects begin with. Takes $. */}}
{{- define "dragoman.name" -}}
{{ default .Release.Name .Values.nameOverride }}
{{- end -}}

{{/* The service account of pods. Takes $. */}}
{{- define "dragoman.account" -}}
{{ default (include "dragoman.name" .) .Values.serviceAccount.name }}
{{- end -}}

{{/* The values of a pool, as YAML: those of all pools, what it sets itself, and names. Takes ($, name, own values). */}}
{{- define "dragoman.pool" -}}
{{- $top := index . 0 -}}
{{- $key := index . 1 -}}
{{- $pool := mustMergeOverwrite (deepCopy (omit $top.Values "pools" "global")) (deepCopy (default dict (index . 2))) -}}
{{- $base := include "dragoman.name" $top -}}
{{- $cuda := eq $pool.device "cuda" -}}
{{- $_ := set $pool "name" (ternary $base (printf "%s-%s" $base $key) (eq $key "default")) -}}
{{- $_ := set $pool "key" $key -}}
{{- $_ := set $pool "release" $top.Release.Name -}}
{{- $_ := set $pool "account" (include "dragoman.account" $top) -}}
{{- $_ := set $pool "cuda" $cuda -}}
{{- $_ := set $pool "keys" (or $pool.apiKeys.enabled $pool.http.enabled) -}}
{{- $_ := set $pool "hasGlossaries" (ne (print $pool.glossaries.configMap $pool.glossaries.claim) "") -}}
{{- $_ := set $pool "isTested" (and (or $pool.test.secret (not $pool.keys)) (not $pool.tls.clients)) -}}
{{- if kindIs "invalid" $pool.maxSurge -}}{{- $_ := set $pool "maxSurge" (ternary 0 1 $cuda) -}}{{- end -}}
{{- if kindIs "invalid" $pool.maxUnavailable -}}{{- $_ := set $pool "maxUnavailable" (ternary 1 0 $cuda) -}}{{- end -}}
{{- $repository := required "set image.repository: the registry and name of your image (docs/kubernetes.md)" $pool.image.repository -}}
{{- $tag := default (ternary "cuda" "cpu" $cuda) $pool.image.tag -}}
{{- $_ := set $pool "imageName" (ternary (printf "%s@%s" $repository $pool.image.digest) (printf "%s:%s" $repository $tag) (ne $pool.image.digest "")) -}}
{{- toYaml $pool -}}
{{- end -}}

{{/* What selects the pods of a release. Takes its name. */}}
{{- define "dragoman.releaseSelector" -}}
app.kubernetes.io/name: dragoman
app.kubernetes.io/instance: {{ . }}
{{- end -}}

{{/* What selects the pods of a pool. */}}
{{- define "dragoman.selector" -}}
{{ include "dragoman.releaseSelector" .release }}
dragoman-pool: {{ .key | quote }}
{{- end -}}

{{/* Labels of an object that all pools share. Takes ($, labels of its own). */}}
{{- define "dragoman.releaseLabels" -}}
{{- $top := index . 0 -}}
{{ include "dragoman.releaseSelector" $top.Release.Name }}
{{- with merge (deepCopy (index . 1)) $top.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of an object of a pool. */}}
{{- define "dragoman.labels" -}}
{{ include "dragoman.selector" . }}
{{- with .labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The site's affinity, and that every node that it allows has an architecture of the image. */}}
{{- define "dragoman.affinity" -}}
{{- $architecture := dict "key" "kubernetes.io/arch" "operator" "In" "values" .architectures -}}
{{- $affinity := deepCopy .affinity -}}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $terms := list -}}
{{- range dig "nodeAffinity" $required "nodeSelectorTerms" (list dict) $affinity -}}
{{- $terms = append $terms (set . "matchExpressions" (append (default list .matchExpressions) $architecture)) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $affinity (dict "nodeAffinity" (dict $required (dict "nodeSelectorTerms" $terms)))) -}}
{{- end -}}

{{/* Who the pods of a pool are, what they may do, and where they run. */}}
{{- define "dragoman.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: false
enableServiceLinks: false # else Kubernetes adds DRAGOMAN_* variables of its own
{{- with .imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . }}}
  {{- end }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
affinity: {{- include "dragoman.affinity" . | nindent 2 }}
{{- if or .cuda .tolerations }}
tolerations:
  {{- if .cuda }}
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
  {{- end }}
  {{- with .tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* The live number of replicas, while Helm has it: a field that Helm leaves out is 1 until the autoscaler has asked
Prometheus. Once the autoscaler has changed it, it is the autoscaler's alone, so that it is in no later revision, to
which a rollback would set it. Without server-side apply Helm never lets go of it. Takes the live Deployment. */}}
{{- define "dragoman.liveReplicas" -}}
{{- $applied := list -}}
{{- range .metadata.managedFields -}}
{{- if eq .operation "Apply" -}}
{{- $applied = append $applied (hasKey (dig "f:spec" dict .fieldsV1) "f:replicas") -}}
{{- end -}}
{{- end -}}
{{- if or (not $applied) (has true $applied) -}}
replicas: {{ .spec.replicas }}
{{- end -}}
{{- end -}}

{{/* The settings file of a pool; texts, numbers, lists and booleans of JSON are those of TOML. */}}
{{- define "dragoman.settings" -}}
{{- range $name, $value := .settings }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{ end -}}

{{/* The load of a pool in pods, as a query of Prometheus. Takes (the chart's files, matchers of series). */}}
{{- define "dragoman.load" -}}
{{ (index . 0).Get "files/load.promql" | replace "PODS" (index . 1) | trim }}
{{- end -}}

{{/* Pods come at once, at most doubled each 30 s, and go one a minute after five quiet minutes. */}}
{{- define "dragoman.behavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - {type: Percent, value: 100, periodSeconds: 30}
scaleDown:
  stabilizationWindowSeconds: 300
  policies:
    - {type: Pods, value: 1, periodSeconds: 60}
{{- end -}}

{{- define "dragoman.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* An egress rule. */}}
{{- define "dragoman.dns" -}}
- to:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
      podSelector: {matchLabels: {k8s-app: kube-dns}}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}

{{/* Labels of series. A ReplicaSet's name is its Deployment's and a hash; the autoscalers ask by Deployment. */}}
{{- define "dragoman.relabelings" -}}
- {sourceLabels: [__meta_kubernetes_pod_controller_name], regex: "(.+)-[a-z0-9]+", targetLabel: deployment}
- {sourceLabels: [__meta_kubernetes_pod_label_dragoman_pool], targetLabel: pool}
{{- end -}}

{{/* Groups of rules with a site's objectives and absolute addresses of runbooks. Takes (groups, monitoring.rules,
address of docs/runbooks.md). The objectives are rules; that of latency is also a bucket, whose labels are texts. */}}
{{- define "dragoman.rules" -}}
{{- $objectives := (index . 1).objectives -}}
{{- $bucket := printf "%v" $objectives.seconds -}}
{{- if not (contains "." $bucket) -}}{{- $bucket = printf "%s.0" $bucket -}}{{- end -}}
{{- $own := dict "failed_ratio" $objectives.failed "slow_ratio" $objectives.slow "slow_seconds" $bucket -}}
{{- range $group := index . 0 -}}
{{- range $rule := $group.rules -}}
{{- with get $own (default "" $rule.record | trimPrefix "dragoman:objective:") -}}
{{- $_ := set $rule "expr" (printf "vector(%v)" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ index . 0 | toYaml | replace "runbook_url: docs/runbooks.md" (printf "runbook_url: %s" (index . 2)) | replace `le="1.0"` (printf "le=%q" $bucket) }}
{{- end -}}
