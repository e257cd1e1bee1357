# From an installed program to the first green run, as the README has it.
cd "$(mktemp -d)"
qualitytrace --version
qualitytrace demo > demo.log 2>&1 &
for _ in $(seq 300); do
  if curl --silent --output /dev/null http://127.0.0.1:11634/; then break; fi
  sleep 0.1
done
qualitytrace init
qualitytrace run > run.log 2>&1 || { cat demo.log run.log; exit 1; }
cat run.log
grep -q 'passed: an order is paid once and shipped' run.log
