# wye_embed_shaders(<target> <room> <header> <folder>...): gives a target the kernels in shaders/<folder>/ as a header
# <folder>_kernels.hpp, with one `wye::<room>::KernelText wye::<room>::kernels::<stem>` for <stem>.comp and <stem>.cu. <header>
# defines KernelText. The GLSL is there as text. The CUDA C++ is there as text, and as PTX if the NVRTC that makes it is there.
# Kernels that use tensor cores have PTX for two architectures, because some types need sm_80, and machine code of WYE_CUBINS.
# wye_ptx compiles them: wyec, which compiles the kernels of others, is linked to the library.
set(wye_ptx_nvrtc_hint ${PROJECT_SOURCE_DIR}/build/wheels/ptx/nvidia/cuda_nvrtc/lib)
if(WYE_PTX_NVRTC AND NOT EXISTS ${WYE_PTX_NVRTC})
  unset(WYE_PTX_NVRTC CACHE)  # Fetched wheels can be removed.
endif()
find_file(WYE_PTX_NVRTC NAMES libnvrtc.so.12 PATHS ${wye_ptx_nvrtc_hint} NO_DEFAULT_PATH
  DOC "The NVRTC that makes PTX of wye's own kernels: drivers that are older than it do not take that")
mark_as_advanced(WYE_PTX_NVRTC)
set(WYE_CUBINS "sm_80;sm_86;sm_89;sm_90" CACHE STRING
  "Architectures that wye's kernels for tensor cores are machine code for; other GPUs compile PTX or text")

set(wye_makes_ptx OFF)
if(WYE_CUDA AND WYE_PTX_NVRTC AND NOT CMAKE_CROSSCOMPILING)
  set(wye_makes_ptx ON)
elseif(WYE_CUDA)
  message(STATUS "wye's kernels have no PTX, so that on CUDA they need NVRTC at run time: PTX is made with the NVRTC that "
    "cmake/wheels.sh ptx fetches or WYE_PTX_NVRTC names.")
endif()

# Sets `headers` to the files of `include` that `sources` include, directly or not. CMake runs again when one of them changes.
function(wye_find_headers headers include)
  set(found)
  set(left ${ARGN})
  while(left)
    list(POP_FRONT left file)
    file(STRINGS ${file} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "${include}/\\1" header "${line}")
      if(NOT header IN_LIST found)
        list(APPEND found ${header})
        list(APPEND left ${header})
      endif()
    endforeach()
  endwhile()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN} ${found})
  set(${headers} ${found} PARENT_SCOPE)
endfunction()

function(wye_embed_shaders target room types)
  set(include ${PROJECT_SOURCE_DIR}/shaders/include)
  set(output_folder ${PROJECT_BINARY_DIR}/shaders)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake)
  set(ptx_script ${PROJECT_SOURCE_DIR}/cmake/compile_ptx.cmake)
  if(wye_makes_ptx)
    wye_with_nvrtc(compiler wye_ptx "${WYE_PTX_NVRTC}")
  endif()
  foreach(folder IN LISTS ARGN)
    file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${folder}/*.comp
      ${PROJECT_SOURCE_DIR}/shaders/${folder}/*.cu)
    set(files ${kernels})
    wye_find_headers(all_headers ${include} ${kernels})
    foreach(kernel IN LISTS kernels)
      cmake_path(GET kernel STEM name)
      if(wye_makes_ptx AND kernel MATCHES "\\.cu$")
        set(targets compute_75)
        file(READ ${kernel} text)
        wye_find_headers(headers ${include} ${kernel})
        if(text MATCHES "#include \"[a-z0-9_]*tensor.cuh\"")
          list(APPEND targets compute_80 ${WYE_CUBINS})
        endif()
        foreach(target IN LISTS targets)
          set(code ${output_folder}/${name}.${target}.cubin)
          if(target MATCHES "^compute_")
            set(code ${output_folder}/${name}.${target}.ptx)
          endif()
          # Of wye_ptx it depends as a target only: that is not other code when its rooms are built again.
          add_custom_command(
            OUTPUT ${code}
            COMMAND ${CMAKE_COMMAND} -D "compiler=${compiler}" -D nvrtc=${WYE_PTX_NVRTC} -D include=${include} -D target=${target}
              -D function=wye_${name} -D kernel=${kernel} -D output=${code} -P ${ptx_script} -- ${headers}
            DEPENDS ${kernel} ${headers} ${WYE_PTX_NVRTC} ${ptx_script}
            COMMENT "Compiling ${folder}/${name}.cu for ${target}"
            VERBATIM)
          list(APPEND files ${code})
        endforeach()
      endif()
    endforeach()
    set(output ${output_folder}/${folder}_kernels.hpp)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -D output=${output} -D include=${include} -D room=${room} -D types=${types} -P ${script} -- ${files}
      DEPENDS ${files} ${all_headers} ${script}
      COMMENT "Embedding the kernels of ${folder}"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endforeach()
  if(wye_makes_ptx)
    add_dependencies(${target} wye_ptx)
  endif()
  target_include_directories(${target} PRIVATE ${output_folder})
endfunction()
