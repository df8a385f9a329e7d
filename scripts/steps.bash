# Steps that scripts/test and scripts/check share; sourced by both in the root of the repository. A step that ends prints one line with
# the time it took, which depends on the steps beside it, and the CPU time of its processes, which hardly does. Its log is in
# target/test/, and the end of it is shown if it failed.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}") logs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/test
# Files of all steps, also those beside each other: of outcomes, and the lock of what is printed.
outcomes=$logs/outcomes printing=$logs/printing
mkdir -p "$logs"; : > "$outcomes"

step() {  # step NAME COMMAND...: counts one, passed or failed, unless the command is a function that sets `good` and `bad`.
  # `show='s/…/…/p' step …` also prints these lines of the log of a step that passes.
  local name=$1 log="$logs/${1// /-}.log" start=$SECONDS good='' bad='' status=0 word=ok more='' shell=$BASHPID used; shift
  used=$(cpu $shell)
  "$@" > "$log" 2>&1 < /dev/null || status=$?
  [ -n "$good" ] || good=$((status == 0)) bad=$((status != 0))
  [ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
  [ "$bad" = 0 ] || word=FAILED
  [ $((good + bad)) = 1 ] || more="  $good passed, $bad failed"
  { flock 9
    printf '%-28s %-6s %5d s %5d s of CPU%s\n' "$name" $word $((SECONDS - start)) $(($(cpu $shell) - used)) "$more"
    if [ "$bad" != 0 ]; then tail -n 200 "$log" | sed 's/^/  | /'; elif [ -n "${show:-}" ]; then sed -n "$show" "$log"; fi
    echo "$good $bad" >> "$outcomes"
  } 9> "$printing"
  [ "$bad" = 0 ]
}
cpu() { awk '{print int(($16 + $17) / 100)}' "/proc/$1/stat"; }  # seconds that the ended children of a process took

beside() {  # beside COMMAND...: runs steps beside the next ones. Some wait, so one more runs than there are processors
  while [ "$(jobs -rp | wc -l)" -gt "$(nproc)" ]; do wait -n || true; done
  echo 0 1 >> "$outcomes"  # What never ends has failed.
  set -m  # Each with processes of its own, for `stop`.
  { "$@" || true; echo 0 -1 >> "$outcomes"; } &
  set +m
}
together() { while [ -n "$(jobs -rp)" ]; do wait -n || true; done; }
stop() { for group in $(jobs -rp); do kill -- "-$group" || true; done; together; }

total() {  # ends the table. Fails if a step failed
  local passed failed
  read -r passed failed < <(awk '{good += $1; bad += $2} END {print good + 0, bad + 0}' "$outcomes")
  echo "$(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

nextest() {  # nextest ARGUMENTS...: every test counts
  local report=$target/nextest/ci/junit.xml status=0 n='"\([0-9]*\)"'
  rm -f "$report"
  cargo nextest run --workspace --cargo-quiet --locked --config-file .cargo/nextest.toml --profile ci "$@" || status=$?
  [ -s "$report" ] || { echo "no report in $report"; return 1; }
  # The attribute `skipped` is there or not, by the version of nextest.
  read -r good bad < <(sed -n "s/^<testsuites .* tests=$n.* failures=$n.* errors=$n.*/\1 \2 \3/p" "$report" |
    awk '{print $1 - $2 - $3, $2 + $3}') || { echo "no counts in $report"; return 1; }
  return $status
}

unittests() {  # unittests FILES COMMAND...: all tests that FILES define must run
  local files=$1 status=0 defined ran; shift
  env PYTHONDONTWRITEBYTECODE=1 "$@" -v || status=$?
  defined=$(grep -rhIE '^ +(async )?def test_' "$files" | wc -l)
  ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' "$log")
  bad=$(grep -cE '^(FAIL|ERROR): ' "$log") || true
  good=$((${ran:-0} - bad))
  if [ "${ran:-0}" -lt "$defined" ] || [ "$defined" = 0 ]; then echo "${ran:-0} of $defined tests ran"; status=1; fi
  return $status
}

book() {  # mdBook exits with 0 where an include or a chapter is missing, and warns
  NCCLCHECK_PROGRAM=$target/debug/ncclcheck mdbook build docs --dest-dir "$target/book" && ! grep -qE '^( WARN|ERROR) ' "$log" && tests/docs/links "$target/book"
}

code_steps() {  # what reads the code and its documentation, without running the program
  step format cargo fmt --check || true
  step clippy cargo clippy --quiet --locked --workspace --all-targets -- -D warnings || true
  step documentation env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --quiet --locked --no-deps || true
}

book_steps() {  # the book, and the scripts that make and check it; needs the program
  step 'scripts of the book' unittests tests/docs python3 -m unittest discover -s tests/docs || true
  step 'book and its links' book || true
}
