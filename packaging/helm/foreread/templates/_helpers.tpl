{{- define "foreread.name" -}}
{{ printf "%s-foreread" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "foreread.selector" -}}
app.kubernetes.io/name: foreread
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "foreread.labels" -}}
{{ include "foreread.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
