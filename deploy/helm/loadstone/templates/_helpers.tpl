{{- define "loadstone.name" -}}
{{- if contains "loadstone" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-loadstone" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "loadstone.labels" -}}
app.kubernetes.io/name: loadstone
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "loadstone.selector" -}}
app.kubernetes.io/name: loadstone
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "loadstone.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "loadstone.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "loadstone.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "loadstone.workers" -}}
{{ include "loadstone.name" . }}-workers
{{- end }}

{{- define "loadstone.refreshers" -}}
{{ include "loadstone.name" . }}-refreshers
{{- end }}

{{- define "loadstone.tablesEnv" -}}
- {name: LOADSTONE_RESULTS_DATABASE_URL_FILE, value: /etc/loadstone/tables/owner}
- {name: LOADSTONE_RESULTS_READER_URL_FILE, value: /etc/loadstone/tables/reader}
{{- end }}

{{- define "loadstone.tablesVolume" -}}
- name: tables
  secret:
    secretName: {{ .Values.tables.existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.tables.ownerKey }}, path: owner}
      - {key: {{ .Values.tables.readerKey }}, path: reader}
{{- end }}

{{- define "loadstone.tlsSecret" -}}
{{ .Values.tls.existingSecret | default (printf "%s-nodes" (include "loadstone.name" .)) }}
{{- end }}

{{- define "loadstone.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.podSecurityContext }}
{{- range $name, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ $value }}
{{- end }}
{{- end }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "loadstone.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "loadstone.validate" -}}
{{- if and (gt (int .Values.server.replicas) 1) (not .Values.database.existingSecret) }}
{{- fail "server.replicas: more than one server needs one control store for all: name its secret in database.existingSecret" }}
{{- end }}
{{- if and (gt (int .Values.server.replicas) 1) (not (hasPrefix "s3://" .Values.results)) }}
{{- fail "results: more than one server needs results that all reach: write results: s3://BUCKET/PREFIX" }}
{{- end }}
{{- if and (eq .Values.autoscaling.mode "keda") (not .Values.autoscaling.keda.tokenSecret) }}
{{- fail "autoscaling.keda.tokenSecret: KEDA asks the server what is wanted and needs a token: make one with `loadstone token keda --scope read` and name its secret" }}
{{- end }}
{{- if and .Values.tables.existingSecret (not .Values.database.existingSecret) }}
{{- fail "tables.existingSecret: a results database of one's own goes with a control store of one's own: name its secret in database.existingSecret" }}
{{- end }}
{{- with .Values.refreshers }}
{{- if and .enabled (not $.Values.tables.existingSecret) }}
{{- fail "refreshers.enabled: they need the databases: name the secrets of the control store in database.existingSecret and of the results database in tables.existingSecret" }}
{{- end }}
{{- if and .enabled (eq .autoscaling.mode "keda") (not $.Values.autoscaling.keda.tokenSecret) }}
{{- fail "autoscaling.keda.tokenSecret: KEDA asks the server how much there is to refresh and needs a token: make one with `loadstone token keda --scope read` and name its secret" }}
{{- end }}
{{- if and .enabled (eq .autoscaling.mode "hpa") (lt (int .autoscaling.minReplicas) 1) }}
{{- fail "refreshers.autoscaling.minReplicas: a HorizontalPodAutoscaler keeps one refresher at least: set it to 1, or take mode: keda" }}
{{- end }}
{{- end }}
{{- if and (lt (int .Values.tables.serverWorkers) 1) (not (and .Values.refreshers.enabled (hasPrefix "s3://" .Values.results))) }}
{{- fail "tables.serverWorkers: with none nobody takes finished runs in: enable refreshers, with results: s3://BUCKET/PREFIX, or set it to 1 or more" }}
{{- end }}
{{- if and (eq .Values.autoscaling.mode "hpa") (lt (int .Values.autoscaling.minReplicas) 1) }}
{{- fail "autoscaling.minReplicas: a HorizontalPodAutoscaler keeps one worker at least: set it to 1, or take mode: keda" }}
{{- end }}
{{- end }}
