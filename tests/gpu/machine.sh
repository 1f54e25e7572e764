# What run.sh needs to know of the machine. Sets $cublas, $cudnn, $sanitizer, $only_cuda, $torch and the library path; for a rehearsal
# also $mode and the latencies. $small, $least and $times are what the device can take.

# NVRTC, cuBLAS and cuDNN: of the toolkit, or of Python's packages; last, the NVRTC beside this file.
toolkit=
cublas=
cudnn=
packages=$(python3 -c "import sysconfig; print(sysconfig.get_path('purelib'))" 2>/dev/null)/nvidia
for folder in "${CUDA_HOME:-}" "$(dirname "$(dirname "$(command -v nvcc 2>/dev/null || echo /usr/local/cuda/bin/nvcc)")")" \
  /usr/local/cuda /opt/cuda "$packages"/*; do
  if [ -z "$folder" ]; then continue; fi
  for lib in "$folder/lib64" "$folder/targets/x86_64-linux/lib" "$folder/lib"; do
    if [ -d "$lib" ]; then toolkit=$toolkit:$lib; fi
    for file in "$lib/libcublas.so.13" "$lib/libcublas.so.12"; do
      if [ -z "$cublas" ] && [ -e "$file" ]; then cublas=$file; fi
    done
    if [ -z "$cudnn" ] && [ -e "$lib/libcudnn.so.9" ]; then cudnn=$lib/libcudnn.so.9; fi
  done
done
PATH=$PATH:/usr/local/cuda/bin
sanitizer=$(command -v compute-sanitizer)
only_cuda="env WYE_BACKENDS=cuda,cpu"
small=
least=0.2  # seconds of a repetition
times=1    # the limit of a step, as a multiple; a part's limit is the same
mode=
of_cudnn=  # tells the tests of cuDNN that they have its stand-in
torch="--device cuda"
torch_libraries=${LD_LIBRARY_PATH:-}  # it brings its own, and finds none of another version
if [ -n "${WYE_CUDA_DRIVER:-}" ]; then
  # Under the names of the system's driver and libraries, and without the toolkit: NVRTC is the one beside this file.
  driver=$(dirname "$WYE_CUDA_DRIVER")
  cublas=$driver/libraries/standin/libcublas.so.13
  cudnn=$driver/libraries/standin/libcudnn.so.9
  of_cudnn=LIBRARIES=standin
  toolkit=:$driver:$driver/libraries/standin
  sanitizer=
  small=--small
  least=0.01
  times=3
  torch="--device cpu --small"
  # Microseconds, of a card in a server: context and interrupt as public users measured them.
  export WYE_STANDIN_LATENCIES="${WYE_STANDIN_LATENCIES-init:400000,context:220000,kernel:5,kernel/add_in_200us:200,\
kernel/add_in_10ms:10000,copy:5,cuLaunchKernel:2,\
cuLaunchKernelEx:2,cuGraphLaunch:8,cuMemcpyAsync:2,cuEventRecord:1,cuEventQuery:1,cuEventSynchronize/wake:40,cuMemAlloc:100,\
cuMemHostAlloc:300,cuMemFreeHost:300,cuLibraryLoadData:500,cuStreamCreateWithPriority:50}"
  mode=", a rehearsal on '${WYE_CUDA_DRIVER##*/}', which is no card"
else
  export WYE_REQUIRE_CARD=1
fi
export LD_LIBRARY_PATH="$here/lib$toolkit:$here/nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WYE_REQUIRE_BACKENDS=cuda
for icd in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/nvidia/share/vulkan/icd.d; do
  if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e "$icd/nvidia_icd.json" ]; then export VK_DRIVER_FILES="$icd/nvidia_icd.json"; fi
done
