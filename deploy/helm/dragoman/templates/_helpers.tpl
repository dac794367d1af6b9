{{/* The values of a pool, as YAML: those of all pools, what it sets itself, and names. Takes ($, name, own values). */}}
{{- define "dragoman.pool" -}}
{{- $top := index . 0 -}}
{{- $key := index . 1 -}}
{{- $pool := mustMergeOverwrite (deepCopy (omit $top.Values "pools" "global")) (deepCopy (default dict (index . 2))) -}}
{{- $name := ternary $top.Release.Name (printf "%s-%s" $top.Release.Name $key) (eq $key "default") -}}
{{- $cuda := eq $pool.device "cuda" -}}
{{- with regexFind "(^|-)(headless|http|metrics|store|tracing)$" $key -}}
{{- fail (printf "pool %s: objects of another pool may have this name; choose one without %s at its end" $key .) -}}
{{- end -}}
{{- $_ := set $pool "name" $name -}}
{{- $_ := set $pool "key" $key -}}
{{- $_ := set $pool "release" $top.Release.Name -}}
{{- $_ := set $pool "cuda" $cuda -}}
{{- $_ := set $pool "keys" (or $pool.apiKeys.enabled $pool.http.enabled) -}}
{{- if kindIs "invalid" $pool.maxSurge -}}{{- $_ := set $pool "maxSurge" (ternary 0 1 $cuda) -}}{{- end -}}
{{- if kindIs "invalid" $pool.maxUnavailable -}}{{- $_ := set $pool "maxUnavailable" (ternary 1 0 $cuda) -}}{{- end -}}
{{- if and (eq (int $pool.maxSurge) 0) (eq (int $pool.maxUnavailable) 0) -}}
{{- fail (printf "pool %s: maxSurge and maxUnavailable are both 0, so that no update could begin" $key) -}}
{{- end -}}
{{- $repository := required "set image.repository: the registry and name of your image (docs/kubernetes.md)" $pool.image.repository -}}
{{- if regexMatch "[:@]" (base $repository) -}}
{{- fail (printf "pool %s: image.repository is %s; set its tag or digest as image.tag or image.digest" $key $repository) -}}
{{- end -}}
{{- $tag := default (ternary "cuda" "cpu" $cuda) $pool.image.tag -}}
{{- $_ := set $pool "imageName" (ternary (printf "%s@%s" $repository $pool.image.digest) (printf "%s:%s" $repository $tag) (ne $pool.image.digest "")) -}}
{{- /* Services expect these ports; of the others the chart sets the variable, which would win without a word. */ -}}
{{- range $setting, $instead := dict "port" "leave it out" "metrics_port" "leave it out" "num_threads" "set cpu" "device" "set device" -}}
{{- if hasKey $pool.settings $setting -}}
{{- fail (printf "pool %s: settings.%s is set by the chart; %s" $key $setting $instead) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $pool.models.from "imageVolume") (not $pool.models.reference) -}}
{{- fail (printf "pool %s: models.from is imageVolume; set models.reference" $key) -}}
{{- end -}}
{{- if and (eq $pool.models.from "imageVolume") (semverCompare "<1.35.0-0" $top.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "pool %s: models.from is imageVolume, which Kubernetes %s does not have by default; use store, claim or image" $key $top.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (eq $pool.models.from "store") (not $pool.models.url) -}}
{{- fail (printf "pool %s: models.from is store; set models.url" $key) -}}
{{- end -}}
{{- if and $pool.ingress.http.enabled (not $pool.http.enabled) -}}
{{- fail (printf "pool %s: ingress.http needs http.enabled" $key) -}}
{{- end -}}
{{- if and $pool.gateway.enabled (not $pool.gateway.parents) -}}
{{- fail (printf "pool %s: gateway.enabled needs gateway.parents" $key) -}}
{{- end -}}
{{- toYaml $pool -}}
{{- end -}}

{{- define "dragoman.releaseLabels" -}}
app.kubernetes.io/name: dragoman
app.kubernetes.io/instance: {{ . }}
{{- end -}}

{{/* What selects the pods of a pool. */}}
{{- define "dragoman.labels" -}}
{{ include "dragoman.releaseLabels" .release }}
dragoman-pool: {{ .key | quote }}
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
