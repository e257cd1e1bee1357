# What install.sh refuses: it ends with 1, names the reason, and installs nothing.
refuses() {
  code=0
  sh ~/install.sh > refused.log 2>&1 || code=$?
  cat refused.log
  [ "$code" = 1 ] || { echo "error: it ended with $code"; exit 1; }
  grep -q "$1" refused.log || { echo "error: the message has no \`$1\`"; exit 1; }
  [ ! -e ~/.local ] || { echo 'error: it installed something'; exit 1; }
}
cd "$(mktemp -d)"
curl --silent --fail --output ~/install.sh "$QUALITYTRACE_DOWNLOAD/install.sh"

QUALITYTRACE_DOWNLOAD=http://127.0.0.1:8000/wrong refuses 'the checksum of .* is wrong'
QUALITYTRACE_DOWNLOAD=http://127.0.0.1:8000/truncated refuses 'the checksum of .* is wrong'
QUALITYTRACE_DOWNLOAD=http://127.0.0.1:8000/missing refuses 'cannot be downloaded'

mkdir bin
for machine in 'Linux riscv64' 'Darwin arm64' 'FreeBSD x86_64' 'MINGW64_NT x86_64'; do
  printf '#!/bin/sh\n[ "$1" = -s ] && echo %s || echo %s\n' $machine > bin/uname
  chmod +x bin/uname
  PATH=$(pwd)/bin:$PATH refuses 'there is no program for'
done

# A script that arrived in part installs nothing, wherever it ends.
for missing in 8 12 100 1000; do
  head -c "-$missing" ~/install.sh > part.sh
  sh part.sh || true
  [ ! -e ~/.local ] || { echo "error: without its last $missing bytes it installed something"; exit 1; }
done

code=0
sh ~/install.sh --verbose 2> refused.log || code=$?
[ "$code" = 1 ] && grep -q 'is not a flag' refused.log
