# ctest_reporting PRESET ARGUMENT...: runs ctest. Its last lines are what the tests report: each part that this machine makes
# meaningless (tests/support/skip.hpp), and each case that failed and then passed alone (tests/support/catch_main.cpp).
ctest_reporting() {
  ctest_preset=$1
  shift
  WYE_TEST_SKIPS=$PWD/build/$ctest_preset/skips.txt
  WYE_TEST_FLAKY=$PWD/build/$ctest_preset/flaky.txt
  export WYE_TEST_SKIPS WYE_TEST_FLAKY
  : >"$WYE_TEST_SKIPS"
  : >"$WYE_TEST_FLAKY"
  ctest_result=0
  ctest --preset "$ctest_preset" "$@" || ctest_result=$?
  sort -u "$WYE_TEST_SKIPS" | sed 's/^/skipped: /'
  sort -u "$WYE_TEST_FLAKY"
  echo "$(sort -u "$WYE_TEST_SKIPS" | wc -l) reported skips, $(sort -u "$WYE_TEST_FLAKY" | wc -l) flaky."
  return $ctest_result
}
