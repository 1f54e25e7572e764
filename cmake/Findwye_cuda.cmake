# Finds the headers of the CUDA Toolkit, of an installed one or of build/wheels/cuda, which `cmake/wheels.sh cuda` fetches, and
# makes wye_deps::cuda_headers. The libraries are not needed: the driver and NVRTC are opened at run time.
# A folder that was found and is gone is looked for again: fetched wheels can be removed.
if(wye_cuda_INCLUDE_DIR AND NOT EXISTS ${wye_cuda_INCLUDE_DIR}/nvrtc.h)
  unset(wye_cuda_INCLUDE_DIR CACHE)
endif()
find_path(wye_cuda_INCLUDE_DIR NAMES nvrtc.h
  HINTS $ENV{CUDA_PATH}/include /usr/local/cuda/include
  PATHS ${CMAKE_CURRENT_LIST_DIR}/../build/wheels/cuda/nvidia/cu13/include)
mark_as_advanced(wye_cuda_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(wye_cuda REQUIRED_VARS wye_cuda_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Install the CUDA Toolkit, or let cmake/wheels.sh cuda fetch its headers and NVRTC.")

if(wye_cuda_FOUND AND NOT TARGET wye_deps::cuda_headers)
  add_library(wye_deps::cuda_headers INTERFACE IMPORTED)
  set_target_properties(wye_deps::cuda_headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${wye_cuda_INCLUDE_DIR}")
endif()
