{{/* Names and labels. */}}

{{- define "qualitytrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The name of the release's resources; what follows it, such as -worker, needs 13 characters. */}}
{{- define "qualitytrace.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "qualitytrace.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of a workload: {root, role}. */}}
{{- define "qualitytrace.workload" -}}
{{- $full := include "qualitytrace.fullname" .root }}
{{- if eq .role "all" }}{{ $full }}{{ else }}{{ printf "%s-%s" $full .role }}{{ end }}
{{- end }}

{{/* The labels by which servers are selected. Pods of hooks have another name, so that no Service leads to them. */}}
{{- define "qualitytrace.selector" -}}
app.kubernetes.io/name: {{ include "qualitytrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "qualitytrace.labels" -}}
{{ include "qualitytrace.selector" . }}
{{ include "qualitytrace.commonLabels" . }}
{{- end }}

{{- define "qualitytrace.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The labels of a hook: {root, hook}. */}}
{{- define "qualitytrace.hookLabels" -}}
app.kubernetes.io/name: {{ include "qualitytrace.name" .root }}-{{ .hook }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{ include "qualitytrace.commonLabels" .root }}
{{- end }}

{{- define "qualitytrace.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "qualitytrace.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "qualitytrace.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{/* The workloads, as a list. */}}
{{- define "qualitytrace.roles" -}}
{{- if eq .Values.roles "split" }}api,ingest,worker{{ else }}all{{ end }}
{{- end }}

{{/* The Secret that a reference names: {root, ref, at}. */}}
{{- define "qualitytrace.secretName" -}}
{{- $name := default .root.Values.existingSecret .ref.existingSecret }}
{{- required (printf "%s: name a Secret in `%s.existingSecret`, or in `existingSecret` for all" .at .at) $name }}
{{- end }}

{{/* The URL of the API within the cluster. */}}
{{- define "qualitytrace.apiUrl" -}}
{{- $scheme := ternary "https" "http" (ne .Values.tls.api.existingSecret "") }}
{{- printf "%s://%s.%s:%v" $scheme (include "qualitytrace.fullname" .) .Release.Namespace .Values.service.api.port }}
{{- end }}
