{{/*
The server's configuration, and the files that it names. Everything is in one projected volume at /etc/qualitytrace.
*/}}

{{/* The files of secrets, as a YAML list of {path, secret, key}. */}}
{{- define "qualitytrace.secretFiles" -}}
{{- $root := . }}
{{- $files := list }}
{{- $named := list
  (dict "at" "postgres.password" "ref" .Values.postgres.password "path" "postgres-password")
  (dict "at" "postgres.ca" "ref" .Values.postgres.ca "path" "postgres-ca.pem")
  (dict "at" "nats.password" "ref" .Values.nats.password "path" "nats-password")
  (dict "at" "nats.nkey" "ref" .Values.nats.nkey "path" "nats-nkey")
  (dict "at" "nats.credentials" "ref" .Values.nats.credentials "path" "nats.creds")
  (dict "at" "nats.ca" "ref" .Values.nats.ca "path" "nats-ca.pem")
  (dict "at" "auth.bootstrapToken" "ref" .Values.auth.bootstrapToken "path" "bootstrap-token")
  (dict "at" "auth.oidc.clientSecret" "ref" .Values.auth.oidc.clientSecret "path" "oidc-client-secret")
  (dict "at" "tls.otlp.clientCa" "ref" .Values.tls.otlp.clientCa "path" "otlp-client-ca.pem")
}}
{{- range $index, $ref := .Values.keys.ids }}
{{- $named = append $named (dict "at" (printf "keys.ids[%d]" $index) "ref" $ref "path" (printf "ids-key-%d" $index)) }}
{{- end }}
{{- range $index, $ref := .Values.keys.secrets }}
{{- $named = append $named (dict "at" (printf "keys.secrets[%d]" $index) "ref" $ref "path" (printf "secrets-key-%d" $index)) }}
{{- end }}
{{- range $named }}
{{- if .ref.key }}
{{- $secret := include "qualitytrace.secretName" (dict "root" $root "ref" .ref "at" .at) }}
{{- $files = append $files (dict "path" (printf "secrets/%s" .path) "secret" $secret "key" .ref.key) }}
{{- end }}
{{- end }}
{{- range $what, $tls := pick .Values.tls "api" "otlp" }}
{{- if $tls.existingSecret }}
{{- range $key := list "tls.crt" "tls.key" }}
{{- $files = append $files (dict "path" (printf "tls/%s/%s" $what $key) "secret" $tls.existingSecret "key" $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $files }}
{{- end }}

{{/* How the configuration names the content of a secret. */}}
{{- define "qualitytrace.content" -}}
{{- printf "${file:/etc/qualitytrace/secrets/%s}" . }}
{{- end }}

{{- define "qualitytrace.postgres" -}}
{{- $postgres := .Values.postgres }}
{{- $params := $postgres.params }}
{{- if $postgres.ca.key }}
{{- $params = trim (printf "%s sslrootcert=/etc/qualitytrace/secrets/postgres-ca.pem" $params) }}
{{- end }}
host: {{ $postgres.host | quote }}
port: {{ $postgres.port }}
user: {{ $postgres.user | quote }}
password: {{ include "qualitytrace.content" "postgres-password" }}
dbname: {{ $postgres.database | quote }}
pool: {{ $postgres.pool }}
{{- with $params }}
params: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "qualitytrace.auth" -}}
mode: "on"
ingest:
  required: {{ .Values.auth.ingestRequired }}
{{- if .Values.auth.bootstrapToken.key }}
bootstrapToken: {{ include "qualitytrace.content" "bootstrap-token" }}
{{- end }}
{{- with .Values.auth.oidc }}
{{- if .issuer }}
oidc:
  issuer: {{ .issuer | quote }}
  clientId: {{ .clientId | quote }}
  {{- if .clientSecret.key }}
  clientSecret: {{ include "qualitytrace.content" "oidc-client-secret" }}
  {{- end }}
  scopes: {{ toJson .scopes }}
  roleClaim: {{ .roleClaim | quote }}
  roles: {{ toJson .roles }}
  {{- with .projectClaim }}
  projectClaim: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "qualitytrace.server" -}}
bind: {{ .Values.listenAddress | quote }}
httpPort: 11633
otlpGrpcPort: 4317
otlpHttpPort: 4318
probePort: 11635
dataDirectory: /data
migrate: {{ not .Values.migration.enabled }}
auth:
  {{- include "qualitytrace.auth" . | nindent 2 }}
{{- with .Values.publicUrl }}
publicUrl: {{ . | quote }}
{{- end }}
{{- with .Values.pathPrefix }}
pathPrefix: {{ . | quote }}
{{- end }}
{{- with .Values.trustedProxies }}
trustedProxies: {{ toJson . }}
{{- end }}
{{- if .Values.provisioning.existingConfigMap }}
provisioning: /provisioning
{{- end }}
{{- if .Values.tls.api.existingSecret }}
tls:
  cert: /etc/qualitytrace/tls/api/tls.crt
  key: /etc/qualitytrace/tls/api/tls.key
{{- end }}
{{- if .Values.tls.otlp.existingSecret }}
otlpTls:
  cert: /etc/qualitytrace/tls/otlp/tls.crt
  key: /etc/qualitytrace/tls/otlp/tls.key
  {{- if .Values.tls.otlp.clientCa.key }}
  clientCa: /etc/qualitytrace/secrets/otlp-client-ca.pem
  {{- end }}
{{- end }}
{{- end }}

{{- define "qualitytrace.nats" -}}
{{- with .Values.nats }}
endpoint: {{ .endpoint | quote }}
prefix: {{ .prefix | quote }}
streams: {{ .streams }}
replicas: {{ .replicas }}
synced: {{ .synced }}
maxBytes: {{ .maxBytes | quote }}
maxAge: {{ .maxAge | quote }}
{{- if .user }}
user: {{ .user | quote }}
{{- end }}
{{- if .password.key }}
password: {{ include "qualitytrace.content" "nats-password" }}
{{- end }}
{{- if .nkey.key }}
nkey: {{ include "qualitytrace.content" "nats-nkey" }}
{{- end }}
{{- if .credentials.key }}
credentials: /etc/qualitytrace/secrets/nats.creds
{{- end }}
{{- if .ca.key }}
ca: /etc/qualitytrace/secrets/nats-ca.pem
{{- end }}
{{- end }}
{{- end }}

{{- define "qualitytrace.configuration" -}}
{{- include "qualitytrace.validate" . }}
{{- $ours := dict
  "postgres" (fromYaml (include "qualitytrace.postgres" .))
  "server" (fromYaml (include "qualitytrace.server" .))
}}
{{- if .Values.nats.endpoint }}
{{- $_ := set $ours "nats" (fromYaml (include "qualitytrace.nats" .)) }}
{{- end }}
{{- range $section, $path := dict "ids" "ids-key-%d" "secrets" "secrets-key-%d" }}
{{- $keys := list }}
{{- range $index, $_ := get $.Values.keys $section }}
{{- $keys = append $keys (include "qualitytrace.content" (printf $path $index)) }}
{{- end }}
{{- if $keys }}
{{- $_ := set $ours $section (dict "keys" $keys) }}
{{- end }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) $ours | toYaml }}
{{- end }}

{{/* The volume with the configuration and its files. */}}
{{- define "qualitytrace.configurationVolume" -}}
name: configuration
projected:
  defaultMode: 0440
  sources:
    - configMap:
        name: {{ include "qualitytrace.fullname" . }}
    {{- range fromYamlArray (include "qualitytrace.secretFiles" .) }}
    - secret:
        name: {{ .secret }}
        items:
          - key: {{ .key }}
            path: {{ .path }}
    {{- end }}
    {{- with include "qualitytrace.fileSources" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The sources of `files`, which parameters of Postgres may name too. */}}
{{- define "qualitytrace.fileSources" -}}
{{- range $index, $file := .Values.files }}
{{- if .existingConfigMap }}
- configMap:
    name: {{ .existingConfigMap }}
{{- else }}
- secret:
    name: {{ include "qualitytrace.secretName" (dict "root" $ "ref" . "at" (printf "files[%d]" $index)) }}
{{- end }}
    items:
      - key: {{ .key }}
        path: files/{{ .path }}
{{- end }}
{{- end }}

{{/* The exporters that keep what is not delivered until it is: their keys in `config`, separated by commas. */}}
{{- define "qualitytrace.durableExporters" -}}
{{- $found := list }}
{{- range $name, $exporter := dig "telemetry" "exporters" (dict) .Values.config }}
{{- $found = append $found (list (printf "telemetry.exporters.%s" $name) $exporter) }}
{{- end }}
{{- range $name, $tracer := dig "tracer" (dict) .Values.config }}
{{- if ne (toString (get $tracer "enable")) "false" }}
{{- $found = append $found (list (printf "tracer.%s" $name) $tracer) }}
{{- end }}
{{- end }}
{{- $durable := list }}
{{- range $found }}
{{- $exporter := index . 1 }}
{{- $memory := eq (dig "buffer" "durability" "" $exporter) "memory" }}
{{- if not (or $memory (eq (toString (get $exporter "lossy")) "true")) }}
{{- $durable = append $durable (index . 0) }}
{{- end }}
{{- end }}
{{- join ", " $durable }}
{{- end }}

{{/* Whether a pod needs the data of the pod that it replaces: {root, role}. */}}
{{- define "qualitytrace.isStateful" -}}
{{- if not .root.Values.journal.lossy }}
{{- $spans := and (not .root.Values.nats.endpoint) (has .role (list "all" "ingest")) }}
{{- if or $spans (include "qualitytrace.durableExporters" .root) }}true{{ end }}
{{- end }}
{{- end }}
