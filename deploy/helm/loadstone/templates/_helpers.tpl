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

{{- /* Where KEDA asks. */ -}}
{{- define "loadstone.scalingURL" -}}
{{- $service := printf "http%s://%s.%s.svc:%v" (ternary "s" "" (ne .Values.server.tls.existingSecret "")) (include "loadstone.name" .) .Release.Namespace .Values.server.service.port -}}
{{ .Values.autoscaling.keda.url | default $service | trimSuffix "/" }}/api/v1/scaling
{{- end }}

{{- define "loadstone.outArgs" -}}
{{- range .Values.out.remoteWrite.urls }}
- {{ printf "--remote-write=%s" . | quote }}
{{- end }}
{{- with .Values.out.otlpMetrics }}
- {{ printf "--otlp-metrics=%s" . | quote }}
{{- end }}
{{- with .Values.out.grafana.url }}
- {{ printf "--grafana-url=%s" . | quote }}
{{- end }}
{{- end }}

{{- define "loadstone.outEnv" -}}
{{- with .Values.out.remoteWrite }}
{{- if .user }}
- {name: LOADSTONE_REMOTE_WRITE_USER, value: {{ .user | quote }}}
{{- end }}
{{- if .tokenKey }}
- {name: LOADSTONE_REMOTE_WRITE_TOKEN_FILE, value: /etc/loadstone/remote-write/token}
{{- end }}
{{- if .passwordKey }}
- {name: LOADSTONE_REMOTE_WRITE_PASSWORD_FILE, value: /etc/loadstone/remote-write/password}
{{- end }}
{{- if .headersKey }}
- {name: LOADSTONE_REMOTE_WRITE_HEADERS_FILE, value: /etc/loadstone/remote-write/headers}
{{- end }}
{{- if .caKey }}
- {name: LOADSTONE_REMOTE_WRITE_CA, value: /etc/loadstone/remote-write/ca.crt}
{{- end }}
{{- end }}
{{- if .Values.out.grafana.existingSecret }}
- {name: LOADSTONE_GRAFANA_TOKEN_FILE, value: /etc/loadstone/grafana/token}
{{- end }}
{{- end }}

{{- define "loadstone.outMounts" -}}
{{- if .Values.out.remoteWrite.existingSecret }}
- {name: remote-write, mountPath: /etc/loadstone/remote-write, readOnly: true}
{{- end }}
{{- if .Values.out.grafana.existingSecret }}
- {name: grafana, mountPath: /etc/loadstone/grafana, readOnly: true}
{{- end }}
{{- end }}

{{- define "loadstone.outVolumes" -}}
{{- with .Values.out.remoteWrite }}
{{- if .existingSecret }}
- name: remote-write
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      {{- range $path, $key := dict "token" .tokenKey "password" .passwordKey "headers" .headersKey "ca.crt" .caKey }}
      {{- if $key }}
      - {key: {{ $key }}, path: {{ $path }}}
      {{- end }}
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.out.grafana }}
{{- if .existingSecret }}
- name: grafana
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .tokenKey }}, path: token}
{{- end }}
{{- end }}
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
seccompProfile: {{ toJson .Values.seccompProfile }}
{{- end }}

{{- define "loadstone.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What a pod of a part has beside the chart's own; of (dict "root" $ "part" .Values.X "component" NAME). */ -}}
{{- define "loadstone.podLabels" -}}
{{- include "loadstone.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- with .part.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "loadstone.placement" -}}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .part.topologySpreadConstraints }}
{{- $own := merge (dict "app.kubernetes.io/component" .component) (include "loadstone.selector" .root | fromYaml) }}
{{- $all := list }}
{{- range .part.topologySpreadConstraints }}
{{- $one := deepCopy . }}
{{- if not $one.labelSelector }}{{ $_ := set $one "labelSelector" (dict "matchLabels" $own) }}{{ end }}
{{- $all = append $all $one }}
{{- end }}
topologySpreadConstraints: {{- toYaml $all | nindent 2 }}
{{- end }}
{{- end }}

{{- define "loadstone.validate" -}}
{{- range $part := list "server" "workers" "refreshers" }}
{{- range $key, $value := (index $.Values $part).podLabels }}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (hasPrefix "helm.sh/" $key) }}
{{- fail (printf "%s.podLabels: %s is one of the chart's own labels, by which its services and policies find pods" $part $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.database.schemaJob.enabled (not .Values.database.existingSecret) }}
{{- fail "database.schemaJob.enabled: the server's own Postgres gets its schema when the server starts: name the secret of an external one in database.existingSecret" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.serviceMonitor.tokenSecret) }}
{{- fail "metrics.serviceMonitor.tokenSecret: /metrics of a server needs a token: make one with `loadstone token prometheus --scope metrics` and name its secret" }}
{{- end }}
{{- if and (gt (int .Values.server.replicas) 1) (not .Values.database.existingSecret) }}
{{- fail "server.replicas: more than one server needs one control store for all: name its secret in database.existingSecret" }}
{{- end }}
{{- if and (gt (int .Values.server.replicas) 1) (not (hasPrefix "s3://" .Values.results)) }}
{{- fail "results: more than one server needs results that all reach: write results: s3://BUCKET/PREFIX" }}
{{- end }}
{{- if and (eq .Values.autoscaling.mode "keda") (not .Values.autoscaling.keda.tokenSecret) }}
{{- fail "autoscaling.keda.tokenSecret: KEDA asks the server what is wanted and needs a token: make one with `loadstone token keda --scope read` and name its secret" }}
{{- end }}
{{- if and .Values.server.tls.existingSecret (or (eq .Values.autoscaling.mode "keda") (and .Values.refreshers.enabled (eq .Values.refreshers.autoscaling.mode "keda"))) (not .Values.autoscaling.keda.url) (not .Values.autoscaling.keda.unsafeSsl) }}
{{- fail "autoscaling.keda.url: with server.tls KEDA has to ask under a name of the certificate: write url: https://NAME, of an authority that KEDA knows, or unsafeSsl: true" }}
{{- end }}
{{- if hasPrefix "/" .Values.results }}
{{- $found := false }}
{{- range .Values.server.extraVolumeMounts }}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $.Values.results) }}{{ $found = true }}{{ end }}
{{- end }}
{{- if not $found }}
{{- fail "results: a folder has to be on one of server.extraVolumeMounts, since the pod's own file system is read-only; \"\" is the server's volume" }}
{{- end }}
{{- end }}
{{- if and .Values.tables.existingSecret (not .Values.database.existingSecret) }}
{{- fail "tables.existingSecret: a results database of one's own goes with a control store of one's own: name its secret in database.existingSecret" }}
{{- end }}
{{- with .Values.out.remoteWrite }}
{{- $keys := or .tokenKey .passwordKey .headersKey .caKey }}
{{- if and $keys (not .existingSecret) }}
{{- fail "out.remoteWrite.existingSecret: a key is named, and no secret that has it" }}
{{- end }}
{{- if and .existingSecret (not $keys) }}
{{- fail "out.remoteWrite.tokenKey: a secret is named, and none of its keys: name it in tokenKey, passwordKey, headersKey or caKey" }}
{{- end }}
{{- if and (or .user .existingSecret) (not .urls) }}
{{- fail "out.remoteWrite.urls: nothing is sent without a receiver" }}
{{- end }}
{{- end }}
{{- with .Values.out.grafana }}
{{- if and .existingSecret (not .url) }}
{{- fail "out.grafana.url: there is a token, and no Grafana that it is for" }}
{{- end }}
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
