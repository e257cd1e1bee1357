# What a user does after the first run. `manual` and `completions` are the prefixes where they are installed, if they are.
fail() {
  echo "error: $1"
  exit 1
}
cd "$(mktemp -d)"
work=$(pwd)

# A fault of the shop, which only its trace shows.
qualitytrace demo --fault n-plus-one > demo.log 2>&1 &
for _ in $(seq 300); do
  if curl --silent --output /dev/null http://127.0.0.1:11634/; then break; fi
  sleep 0.1
done
qualitytrace init
code=0
qualitytrace run > run.log 2>&1 || code=$?
cat run.log
[ "$code" = 1 ] || fail "with the fault, \`run\` ended with $code"
grep -q 'no statement is asked again and again' run.log

# The manual: by man where the channel installs it, else as the program prints it.
if [ -n "$manual" ]; then
  MANPAGER='cat' man qualitytrace > man.log
  MANPAGER='cat' man qualitytrace-run > man-run.log
  grep -q 'qualitytrace.run' man-run.log || fail 'the manual of a command is missing'
  case "$(man --where qualitytrace)" in
    "$manual"/*) ;;
    *) fail "the manual is not in $manual" ;;
  esac
else
  qualitytrace man > qualitytrace.1
  MANPAGER='cat' man --local-file ./qualitytrace.1 > man.log
fi
grep -q NAME man.log || fail 'the manual has no heading NAME'
grep -q -i 'qualitytrace' man.log || fail 'the manual does not name the program'

# Completions: the installed files, else what the program prints.
if [ -n "$completions" ]; then
  bash=$completions/share/bash-completion/completions/qualitytrace
  fish=$completions/share/fish/vendor_completions.d/qualitytrace.fish
  zsh=$completions/share/zsh/site-functions
  [ -f "$zsh/_qualitytrace" ] || zsh=$completions/share/zsh/vendor-completions
else
  bash=$work/bash fish=$work/fish zsh=$work/zsh
  mkdir "$zsh"
  qualitytrace completion bash > "$bash"
  qualitytrace completion fish > "$fish"
  qualitytrace completion zsh > "$zsh/_qualitytrace"
fi
found=$(bash -c ". '$bash'; COMP_WORDS=(qualitytrace vers) COMP_CWORD=1
  _qualitytrace qualitytrace vers qualitytrace; echo \"\${COMPREPLY[@]}\"")
[ "$found" = version ] || fail "bash completes \`vers\` to \`$found\`"
found=$(fish -c "source '$fish'; complete --do-complete 'qualitytrace vers'" | cut -f 1)
[ "$found" = version ] || fail "fish completes \`vers\` to \`$found\`"
found=$(zsh -fc "fpath=('$zsh' \$fpath); autoload -Uz compinit; compinit -u -D
  autoload +X _qualitytrace && echo \"\$_comps[qualitytrace]\"")
[ "$found" = _qualitytrace ] || fail "zsh completes by \`$found\`"

# The page; the server shows it before it reaches its database.
cat > server.yaml << 'END'
postgres: {host: 127.0.0.1, port: 1}
END
qualitytrace serve --config server.yaml > server.log 2>&1 &
for _ in $(seq 300); do
  if curl --silent --fail --output page.html http://127.0.0.1:11633/; then break; fi
  sleep 0.1
done
script=$(sed -n 's|.*src="\([^"]*/assets/[^"]*\.js\)".*|\1|p' page.html | head -n 1)
[ -n "$script" ] || { cat server.log; fail 'the page at `/` loads no script: the program was built without it'; }
curl --silent --fail --output /dev/null "http://127.0.0.1:11633$script" || fail "the script $script of the page is missing"
