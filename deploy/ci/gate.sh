#!/usr/bin/env bash
# The gate of a CI job, from its variables: measures, and writes the result where the job shows it. It ends as
# `loadstone gate` does. GitHub's action calls it; so may any other CI.
set -uo pipefail

: "${GATE_TEMPLATE:?is the template of the runs}"
report=${GATE_REPORT:-$PWD/loadstone-gate}
mkdir -p "$report"
rm -f "$report"/gate.{json,xml,md} "$report/comment.md" # of a job before
args=("$GATE_TEMPLATE")
[ -z "${GATE_CANDIDATE_TEMPLATE:-}" ] || args+=("$GATE_CANDIDATE_TEMPLATE")
# Fields are lines; they may have spaces and quotes.
fields() {
  while IFS= read -r line; do
    [ -z "$line" ] || args+=("$1" "$line")
  done <<< "$2"
}
fields --base "${GATE_BASE:-}"
fields --candidate "${GATE_CANDIDATE:-}"
fields --base-file "${GATE_BASE_FILE:-}"
fields --candidate-file "${GATE_CANDIDATE_FILE:-}"
# An address has a password: it goes by a file that only this user reads, as other users see arguments.
address() {
  [ -n "$2" ] || return 0
  if [ -z "${secrets:-}" ]; then
    secrets=$(mktemp -d) || exit 1
    trap 'rm -rf "$secrets"' EXIT
  fi
  (umask 077 && printf '%s\n' "$2" > "$secrets/$3") || exit 1
  args+=("$1" "target.connection.dsn=$secrets/$3")
}
{ traced=$-; set +x; } 2>/dev/null
address --base-file "${GATE_BASE_DSN:-}" base
address --candidate-file "${GATE_CANDIDATE_DSN:-}" candidate
unset GATE_BASE_DSN GATE_CANDIDATE_DSN
case $traced in *x*) set -x ;; esac
[ -z "${GATE_BASE_COMMAND:-}" ] || args+=(--base-command "$GATE_BASE_COMMAND")
[ -z "${GATE_CANDIDATE_COMMAND:-}" ] || args+=(--candidate-command "$GATE_CANDIDATE_COMMAND")
[ "${GATE_ALLOW_UNCLEAR:-false}" != true ] || args+=(--allow-unclear)

loadstone gate "${args[@]}" --max-slowdown "${GATE_MAX_SLOWDOWN:-3%}" --budget "${GATE_BUDGET:-10m}" \
  --out "$report/gate.json" --junit "$report/gate.xml" --markdown "$report/gate.md"
code=$?

verdict=$(sed -n 's/^ *"verdict": "\([a-z_]*\)".*/\1/p' "$report/gate.json" 2>/dev/null | head -n 1)
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "verdict=$verdict"; echo "report=$report"; } >> "$GITHUB_OUTPUT"
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -s "$report/gate.md" ] || cat "$report/gate.md" >> "$GITHUB_STEP_SUMMARY"
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  case $code in
    0) ;;
    3) echo "::error title=Loadstone::The candidate is slower. The job's summary has the figures." ;;
    5) echo "::warning title=Loadstone::The gate cannot tell. Give it a longer budget, or a quieter runner." ;;
    *) echo "::error title=Loadstone::The gate failed; see the log." ;;
  esac
fi

# One comment, found by its first line and renewed. A token that may not write, as of a fork, is no failure.
if [ "${GATE_COMMENT:-false}" = true ] && [ -n "${GATE_PULL_REQUEST:-}" ] && [ -s "$report/gate.md" ]; then
  mark='<!-- loadstone gate -->'
  { echo "$mark"; cat "$report/gate.md"; } > "$report/comment.md"
  comments="repos/$GITHUB_REPOSITORY/issues/$GATE_PULL_REQUEST/comments"
  old=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" 2>/dev/null | head -n 1)
  if [ -n "$old" ]; then
    gh api -X PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" -F "body=@$report/comment.md" > /dev/null
  else
    gh api "$comments" -F "body=@$report/comment.md" > /dev/null
  fi || echo "::notice title=Loadstone::The comment could not be written: the token may not. The summary has the figures."
fi
exit $code
