# wye_add_kernels(<target> <file>... [NAMESPACE <name>] [INCLUDE_DIRECTORIES <folder>...] [DEFINITIONS <macro>[=<value>]...]
#   [TEXT] [ARCHITECTURES <architecture>...] [NVRTC <file>])
# Compiles kernels while a target is built, and gives it a header for each: scale.comp, or scale.slang, becomes <kernels/scale.hpp> with the
# function kernels::scale, which gives a wye::Kernel, and kernels::scale_source, its wye::SpirV. Files that differ in their
# endings only, scale.comp and scale.cu, are sources of one kernel. NAMESPACE app::gpu makes it <app/gpu/scale.hpp> and
# app::gpu::scale. With TEXT the header has the text, checked now and compiled at run time: its source is a wye::Glsl or wye::Slang. CUDA C++
# (.cu) is such a text too, unless ARCHITECTURES says what it is to be compiled for: sm_80 sm_90 (machine code) compute_90 (PTX).
# NVRTC is the library that compiles it; by default the newest that is found. Drivers take no PTX of a newer NVRTC.
# A change of a file, or of a file that it includes, compiles it again.
cmake_policy(VERSION 3.25)

# wye_with_nvrtc(<variable> <program> <nvrtc>): how to call a program with a certain NVRTC, or with "" with whatever there is.
function(wye_with_nvrtc variable program nvrtc)
  set(command ${program})
  if(nvrtc)
    # NVRTC opens a library of its own, which is found where the loader looks. What NVRTC leaves behind is not the program's.
    cmake_path(GET nvrtc PARENT_PATH folder)
    set(command ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 --modify LD_LIBRARY_PATH=path_list_prepend:${folder}
      $<TARGET_FILE:${program}>)
  endif()
  set(${variable} ${command} PARENT_SCOPE)
endfunction()

function(wye_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TEXT" "NAMESPACE;NVRTC" "INCLUDE_DIRECTORIES;DEFINITIONS;ARCHITECTURES")
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "wye_add_kernels: ${arg_KEYWORDS_MISSING_VALUES} has no value.")
  endif()
  if(NOT TARGET wye::wyec)
    message(FATAL_ERROR "wye_add_kernels needs the program wyec: find_package(wye COMPONENTS tools), or WYE_TOOLS=ON where "
      "wye is built with its host.")
  endif()
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wye_add_kernels(${target}) names no kernel.")
  endif()
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE kernels)
  endif()
  set(options --namespace ${arg_NAMESPACE})
  if(arg_TEXT)
    list(APPEND options --as text)
  endif()
  foreach(folder IN LISTS arg_INCLUDE_DIRECTORIES)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND options -I ${folder})
  endforeach()
  foreach(definition IN LISTS arg_DEFINITIONS)
    list(APPEND options -D ${definition})
  endforeach()
  if(arg_NVRTC AND NOT EXISTS ${arg_NVRTC})
    message(FATAL_ERROR "wye_add_kernels: there is no NVRTC '${arg_NVRTC}'.")
  endif()
  wye_with_nvrtc(wyec wye::wyec "${arg_NVRTC}")
  set(architectures "")
  foreach(architecture IN LISTS arg_ARCHITECTURES)
    list(APPEND architectures --target ${architecture})
  endforeach()

  string(REPLACE "::" "/" folder ${arg_NAMESPACE})
  set(root ${CMAKE_CURRENT_BINARY_DIR}/wye_kernels/${target})
  file(MAKE_DIRECTORY ${root}/${folder})
  set(names "")
  foreach(kernel IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH kernel BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET kernel STEM name)
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "wye_add_kernels: '${name}', as ${kernel} is called, cannot name a function of C++.")
    endif()
    if(NOT name IN_LIST names)
      list(APPEND names ${name})
      set(files_${name} "")
      set(targets_${name} "")
    endif()
    list(APPEND files_${name} ${kernel})
    if(kernel MATCHES "\\.cu$")
      set(targets_${name} ${architectures})
      if(arg_NVRTC)
        list(APPEND targets_${name} --nvrtc ${arg_NVRTC})
      endif()
    endif()
  endforeach()
  foreach(name IN LISTS names)
    set(header ${root}/${folder}/${name}.hpp)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${wyec} embed ${files_${name}} -o ${header} --depfile ${header}.d --name ${name} ${options}
        ${targets_${name}}
      DEPENDS ${files_${name}} $<TARGET_FILE:wye::wyec> ${arg_NVRTC}
      DEPFILE ${header}.d
      COMMENT "Compiling the kernel ${name}"
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${root})
endfunction()
