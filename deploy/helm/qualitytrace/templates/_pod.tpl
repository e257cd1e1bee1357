{{/* The pods. All of them fit the Pod Security Standard `restricted`. */}}

{{- define "qualitytrace.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "qualitytrace.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What the pods of hooks and of servers share. */}}
{{- define "qualitytrace.podBase" -}}
automountServiceAccountToken: false
{{- /* A Service named qualitytrace would be in variables of the form QUALITYTRACE_…, which are settings of the program. */}}
enableServiceLinks: false
securityContext:
  {{- include "qualitytrace.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The container of a server: {root, role}. */}}
{{- define "qualitytrace.container" -}}
{{- $root := .root -}}
name: server
image: {{ include "qualitytrace.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args:
  - serve
  - --config=/etc/qualitytrace/quality-trace-config.yaml
  {{- if ne .role "all" }}
  - --roles={{ .role }}
  {{- end }}
{{- with $root.Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: http
    containerPort: 11633
  {{- if has .role (list "all" "ingest") }}
  - name: otlp-grpc
    containerPort: 4317
  - name: otlp-http
    containerPort: 4318
  {{- end }}
  - name: probes
    containerPort: 11635
startupProbe:
  httpGet:
    path: /livez
    port: probes
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /livez
    port: probes
  periodSeconds: 10
  timeoutSeconds: 4
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: probes
  periodSeconds: 5
  # The server waits 2 s for Postgres before it reports that it is not ready.
  timeoutSeconds: 4
  failureThreshold: 2
{{- with $root.Values.drain.preStopSeconds }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ . }}
{{- end }}
resources:
  {{- toYaml (get $root.Values.workloads .role).resources | nindent 2 }}
securityContext:
  {{- include "qualitytrace.containerSecurity" . | nindent 2 }}
volumeMounts:
  - name: configuration
    mountPath: /etc/qualitytrace
    readOnly: true
  - name: data
    mountPath: /data
  {{- if $root.Values.provisioning.existingConfigMap }}
  - name: provisioning
    mountPath: /provisioning
    readOnly: true
  {{- end }}
{{- end }}

{{/* Where pods go: {root, role}. */}}
{{- define "qualitytrace.placement" -}}
{{- $workload := get .root.Values.workloads .role -}}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with default (get $.root.Values $key) (get $workload $key) }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (fromYaml (include "qualitytrace.workloadSelector" $))) }}
  - {{ toYaml (merge (deepCopy .) $own) | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The labels that select the pods of a workload: {root, role}. */}}
{{- define "qualitytrace.workloadSelector" -}}
{{ include "qualitytrace.selector" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{/* The template of a server's pods: {root, role}. */}}
{{- define "qualitytrace.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "qualitytrace.workloadSelector" . | nindent 4 }}
    {{- include "qualitytrace.commonLabels" $root | nindent 4 }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed configuration replaces the pods.
    checksum/configuration: {{ include "qualitytrace.configuration" $root | sha256sum }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "qualitytrace.serviceAccount" $root }}
  {{- include "qualitytrace.podBase" $root | nindent 2 }}
  terminationGracePeriodSeconds: {{ $root.Values.drain.terminationGracePeriodSeconds }}
  {{- with include "qualitytrace.placement" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - {{ include "qualitytrace.container" . | trim | nindent 6 | trim }}
  volumes:
    - {{ include "qualitytrace.configurationVolume" $root | nindent 6 | trim }}
    {{- if not (include "qualitytrace.isStateful" .) }}
    - name: data
      emptyDir:
        sizeLimit: {{ $root.Values.journal.size }}
    {{- end }}
    {{- with $root.Values.provisioning.existingConfigMap }}
    - name: provisioning
      configMap:
        name: {{ . }}
    {{- end }}
{{- end }}
