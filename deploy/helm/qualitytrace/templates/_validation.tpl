{{/*
What no schema of values can refuse: values that contradict each other. Each message names the keys to change.
*/}}

{{- define "qualitytrace.validate" -}}
{{- include "qualitytrace.validateConfig" . }}
{{- include "qualitytrace.validateReplicas" . }}
{{- $_ := required "postgres.host: name the host of Postgres; the chart installs none" .Values.postgres.host }}
{{- $_ := required "postgres.password.key: name the entry of the Secret" .Values.postgres.password.key }}
{{- with .Values.drain }}
{{- if lt (int .terminationGracePeriodSeconds) (add 30 .preStopSeconds | int) }}
{{- fail (printf "drain.terminationGracePeriodSeconds: %v is too short: a server needs up to 29 s after preStopSeconds (%v); give it at least %v" .terminationGracePeriodSeconds .preStopSeconds (add 30 .preStopSeconds)) }}
{{- end }}
{{- end }}
{{- if .Values.journal.lossy }}
{{- with include "qualitytrace.durableExporters" . }}
{{- fail (printf "journal.lossy: the configuration promises that %s loses nothing; set `lossy: true` there too, or `journal.lossy: false`" .) }}
{{- end }}
{{- end }}
{{- with .Values.nats }}
{{- if not .endpoint }}
{{- range $key := list "password" "nkey" "credentials" "ca" }}
{{- if get (get $.Values.nats $key) "key" }}
{{- fail (printf "nats.%s: there is no `nats.endpoint`" $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne (empty .user) (empty .password.key) }}
{{- fail "nats.user and nats.password.key: give both or none" }}
{{- end }}
{{- if gt (len (compact (list .user .nkey.key .credentials.key))) 1 }}
{{- fail "nats: choose one way to log in: user with password, nkey, or credentials" }}
{{- end }}
{{- end }}
{{- with .Values.auth.oidc }}
{{- if and (not .issuer) (or .clientId .clientSecret.key .roles .projectClaim) }}
{{- fail "auth.oidc: there is no `auth.oidc.issuer`" }}
{{- end }}
{{- if and .issuer (not (and .clientId .roles)) }}
{{- fail "auth.oidc: an issuer needs `clientId` and `roles`" }}
{{- end }}
{{- end }}
{{- if and .Values.tls.otlp.clientCa.key (not .Values.tls.otlp.existingSecret) }}
{{- fail "tls.otlp.clientCa: there is no `tls.otlp.existingSecret`" }}
{{- end }}
{{- if and .Values.migration.user (not .Values.migration.password.key) }}
{{- fail "migration.user: name the entry with its password in `migration.password.key`" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.host: name the host" }}
{{- end }}
{{- include "qualitytrace.validateHelmTest" . }}
{{- end }}

{{/* Keys of `config` that follow from other values: a second value would be ignored, or contradict the ports of the pods. */}}
{{- define "qualitytrace.validateConfig" -}}
{{- $managed := list
  (list "postgres" "postgres")
  (list "nats" "nats")
  (list "ids" "keys.ids")
  (list "secrets" "keys.secrets")
  (list "server.bind" "listenAddress")
  (list "server.roles" "roles")
  (list "server.httpPort" "service.api.port")
  (list "server.otlpGrpcPort" "service.otlp.grpcPort")
  (list "server.otlpHttpPort" "service.otlp.httpPort")
  (list "server.probePort" "")
  (list "server.dataDirectory" "")
  (list "server.migrate" "migration.enabled")
  (list "server.auth" "auth")
  (list "server.publicUrl" "publicUrl")
  (list "server.pathPrefix" "pathPrefix")
  (list "server.trustedProxies" "trustedProxies")
  (list "server.provisioning" "provisioning.existingConfigMap")
  (list "server.tls" "tls.api")
  (list "server.otlpTls" "tls.otlp")
}}
{{- range $managed }}
{{- $path := splitList "." (index . 0) }}
{{- $section := $.Values.config }}
{{- if eq (len $path) 2 }}
{{- $section = default (dict) (get $.Values.config (first $path)) }}
{{- end }}
{{- if hasKey $section (last $path) }}
{{- with index . 1 }}
{{- fail (printf "config.%s: the chart sets this key: use the value `%s`" (join "." $path) .) }}
{{- end }}
{{- fail (printf "config.%s: the chart sets this key, and its value has no effect outside of the pod" (join "." $path)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "qualitytrace.validateReplicas" -}}
{{- if and (eq .Values.roles "split") (not .Values.nats.endpoint) }}
{{- fail "roles: `split` needs `nats.endpoint`: spans travel from ingest to worker over NATS" }}
{{- end }}
{{- range $role := splitList "," (include "qualitytrace.roles" .) }}
{{- $workload := get $.Values.workloads $role }}
{{- $max := ternary $workload.autoscaling.maxReplicas $workload.replicas $workload.autoscaling.enabled | int }}
{{- if and (gt $max 1) (not $.Values.nats.endpoint) }}
{{- fail (printf "workloads.%s: %d pods need `nats.endpoint`: without NATS a server does not know the spans of another one, and concludes nothing from absence" $role $max) }}
{{- end }}
{{- $workers := mul 32 $.Values.nats.streams | int }}
{{- if and (has $role (list "all" "worker")) (gt $max $workers) }}
{{- fail (printf "workloads.%s: %d pods with workers are more than the %d that `nats.streams` has slots for; raise it to %d" $role $max $workers (div (add $max 31) 32)) }}
{{- end }}
{{- if and $workload.autoscaling.enabled (gt (int $workload.autoscaling.minReplicas) $max) }}
{{- fail (printf "workloads.%s.autoscaling: minReplicas is above maxReplicas" $role) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "qualitytrace.validateHelmTest" -}}
{{- if and .Values.helmTest.enabled .Values.helmTest.onServer }}
{{- if not (dig "server" "triggers" "networks" "allow" (list) .Values.config) }}
{{- fail "helmTest.onServer: a worker reaches public networks only; allow the network of Services in `config.server.triggers.networks.allow`, such as 10.96.0.0/12" }}
{{- end }}
{{- $_ := required "helmTest.token.key: name the entry of the Secret" .Values.helmTest.token.key }}
{{- if and .Values.tls.api.existingSecret (not .Values.publicUrl) }}
{{- fail "helmTest.onServer: with `tls.api` it needs `publicUrl`, whose name the certificate has" }}
{{- end }}
{{- end }}
{{- end }}
