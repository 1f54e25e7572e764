set(backend_enabled ${WYE_CUDA})
set(backend_libraries "")
if(WYE_CUDA)
  # Headers only: the driver is opened at run time.
  set(backend_libraries $<BUILD_INTERFACE:wye_deps::cuda_headers>)
endif()
