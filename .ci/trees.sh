# The trees with sanitizers, for scripts that have set $root to the repository, entered it, and read tests/support/ctest.sh.
cuda=
[ ! -f build/wheels/cuda/fetched.txt ] || cuda=,cuda
export WYE_REQUIRE_BACKENDS=cpu,vulkan$cuda
export CMAKE_CXX_COMPILER_LAUNCHER=ccache
unset VK_INSTANCE_LAYERS VK_LAYER_ENABLES VK_LAYER_MESSAGE_ID_FILTER # of a developer: TSan reports the locks of layers
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_init_order=1
export LSAN_OPTIONS="suppressions=$root/tests/support/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$root/tests/support/tsan.supp:second_deadlock_stack=1"
# The rooms with threads.
tsan_rooms="pool cache scheduler contract interop runtime process records soak backend_vulkan${cuda:+ backend_cuda cuda_stand_in}"

build_asan() { # build_asan OPTION...: clang with ASan and UBSan
  cmake --preset asan -D CMAKE_CXX_FLAGS_RELWITHDEBINFO=-g1 "$@" && cmake --build --preset asan
}
tsan() { # g++ with TSan; the text of kernels for CUDA is compiled when it is needed
  cmake --preset tsan -D WYE_PTX_NVRTC=OFF -D CMAKE_CXX_FLAGS_RELWITHDEBINFO=-g1 &&
    cmake --build --preset tsan --target $(printf 'wye_%s_tests ' $tsan_rooms) &&
    ctest_reporting tsan -R "^($(echo $tsan_rooms | tr ' ' '|'))$"
}
