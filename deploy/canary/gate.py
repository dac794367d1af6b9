"""The gate of a canary, as a query of Prometheus: it answers with a series for each reason to stop, and none to go on;
with -1 for the reason `too few calls` while nothing can be said.

    python deploy/canary/gate.py --canary 'deployment="dragoman-canary"' --stable 'deployment="dragoman"'

The two are compared, so that what is true of both, such as a hard day's texts, stops nobody. Shares differ if the
canary's is larger by a hundredth and by three standard errors of the difference of two equal shares, so that few calls
do not stop it by chance. With `--template` it is an AnalysisTemplate of Argo Rollouts.
"""

import argparse

_LEAST_CALLS = 100  # of each side; with fewer the answer is `too few calls`
_LEAST_DIFFERENCE = 0.01  # of shares
_STANDARD_ERRORS = 3
# Quantiles: how many times slower they may not be, and of how many calls they tell something. Tails vary more.
_SLOWER = {0.5: (1.5, _LEAST_CALLS), 0.95: (2.0, 4 * _LEAST_CALLS)}
_LEAST_SECONDS = 0.01  # slower
_LENGTHS = 0.15  # longer or shorter outputs, for the length of their sources

_FAILED = 'code=~"INTERNAL|UNKNOWN|DATA_LOSS|UNAVAILABLE|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED"'
_CUT = 'reason=~"length|ratio|repetition"'
_ENDED = 'reason!~"cancelled|deadline"'
# How a share is counted: what is counted of all, and of the bad ones.
_CALLS = "dragoman_model_requests_total"
_SHARES = {
    "failures": (f"{_CALLS}{{OF}}", f"{_CALLS}{{OF,{_FAILED}}}"),
    "cut short": (f"dragoman_finish_total{{OF,{_ENDED}}}", f"dragoman_finish_total{{OF,{_CUT}}}"),
    "flags": (f"dragoman_finish_total{{OF,{_ENDED}}}", "dragoman_segment_flags_total{OF}"),
}


def gate(canary: str, stable: str, window: str) -> str:
    """Return the query for matchers of the canary's and the stable one's series, over a window such as 5m."""
    reasons = {
        **{name: _larger_share(all_of, bad, canary, stable, window) for name, (all_of, bad) in _SHARES.items()},
        "slow": " or ".join(_slower(quantile, canary, stable, window) for quantile in _SLOWER),
        "lengths": _other_lengths(canary, stable, window),
    }
    enough = " and ".join(f"({_number(_CALLS + '{OF}', side, window)} >= {_LEAST_CALLS})" for side in (canary, stable))
    lines = [f'label_replace(({query}) and ({enough}), "reason", "{name}", "", "")' for name, query in reasons.items()]
    few = " or ".join(f"({_number(_CALLS + '{OF}', side, window)} < {_LEAST_CALLS})" for side in (canary, stable))
    lines.append(f'label_replace(({few}) * 0 - 1, "reason", "too few calls", "", "")')
    return "\nor ".join(lines)


def _number(series: str, of: str, window: str) -> str:
    return f"(sum(increase({series.replace('OF', of)}[{window}])) or vector(0))"


def _larger_share(all_of: str, bad: str, canary: str, stable: str, window: str) -> str:
    all_canary, all_stable = (_number(all_of, side, window) for side in (canary, stable))
    bad_canary, bad_stable = (_number(bad, side, window) for side in (canary, stable))
    share = f"(({bad_canary} + {bad_stable}) / ({all_canary} + {all_stable}))"
    # As of Poisson's distribution: a sequence may have several flags. Few counts aren't normal, hence one less of them.
    deviation = f"sqrt({share} * (1 / {all_canary} + 1 / {all_stable}))"
    difference = f"({bad_canary} - 1) / {all_canary} - {bad_stable} / {all_stable}"
    return f"{difference} > clamp_min({_STANDARD_ERRORS} * {deviation}, {_LEAST_DIFFERENCE})"


def _slower(quantile: float, canary: str, stable: str, window: str) -> str:
    name = "dragoman_model_request_duration_seconds_bucket"
    of_canary, of_stable = (
        f"histogram_quantile({quantile}, sum by (le) (rate({name}{{{side}}}[{window}])))" for side in (canary, stable)
    )
    times, least_calls = _SLOWER[quantile]
    is_slower = f"{of_canary} - {of_stable} > clamp_min({times - 1:g} * {of_stable}, {_LEAST_SECONDS})"
    return f"({is_slower}) and ({_number(_CALLS + '{OF}', canary, window)} >= {least_calls})"


def _other_lengths(canary: str, stable: str, window: str) -> str:
    of_canary, of_stable = (
        f"{_number('dragoman_target_length_tokens_sum{OF}', side, window)} "
        f"/ {_number('dragoman_source_length_tokens_sum{OF}', side, window)}"
        for side in (canary, stable)
    )
    return f"abs(({of_canary}) / ({of_stable}) - 1) > {_LENGTHS}"


def template() -> str:
    """Return an AnalysisTemplate of Argo Rollouts, whose arguments are the matchers, the window and Prometheus."""
    # Argo takes the first two of three braces for its own.
    query = gate(" {{args.canary}}", " {{args.stable}}", "{{args.window}}").replace("\n", "\n            ")
    return f"""\
# Written by gate.py --template: change that and run it.
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata:
  name: dragoman-canary
spec:
  args:
    - name: canary # matchers, such as deployment="dragoman-canary"
    - name: stable
    - name: window
      value: 5m
    - name: prometheus
      value: http://prometheus-operated.monitoring.svc:9090
  metrics:
    - name: gate
      interval: 30s
      count: 20
      failureLimit: 1 # one answer may be chance
      inconclusiveLimit: 10 # too few calls
      successCondition: len(result) == 0 # no reason to stop
      failureCondition: "any(result, {{# > 0}})" # -1 means too few calls
      provider:
        prometheus:
          address: "{{{{args.prometheus}}}}"
          query: |-
            {query}
"""


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--canary", help='matchers of its series, such as deployment="dragoman-canary"')
    parser.add_argument("--stable", help='matchers of the others, such as deployment="dragoman"')
    parser.add_argument("--window", default="5m")
    parser.add_argument("--template", action="store_true", help="print an AnalysisTemplate of Argo Rollouts")
    options = parser.parse_args()
    if not options.template and not (options.canary and options.stable):
        parser.error("give --canary and --stable, or --template")
    print(template() if options.template else gate(options.canary, options.stable, options.window), end="")


if __name__ == "__main__":
    _main()
