{{- define "cloudid.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end }}
{{- define "cloudid.selector" -}}
app.kubernetes.io/name: cloudid
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "cloudid.labels" -}}
{{ include "cloudid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- /* The host to listen on. A server listens on every address that a name has: of a pod's own host name, both families. */}}
{{- define "cloudid.host" -}}
{{- if eq .Values.ipFamily "Dual" }}cloudid{{ else if eq .Values.ipFamily "IPv6" }}[::]{{ else }}0.0.0.0{{ end }}
{{- end }}
