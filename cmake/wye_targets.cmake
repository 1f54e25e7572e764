# How targets of wye are compiled. Everything is said target by target: a host that adds wye as a subdirectory keeps
# its own flags.

# wye_options(<target>): the options of every target of wye.
function(wye_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # Paths in the binary (debug information, Place) are relative to the source tree.
  target_compile_options(${target} PRIVATE
    -ffile-prefix-map=${wye_SOURCE_DIR}=. -ffile-prefix-map=${wye_BINARY_DIR}=.)
  if(wye_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)
    # g++ 12 sees overlaps in std::string that are not there (PR105651); with sanitizers, g++ sees uninitialized reads
    # in std::variant that are not there.
    target_compile_options(${target} PRIVATE
      $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
    if(WYE_SANITIZE)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    endif()
    set_target_properties(${target} PROPERTIES COMPILE_WARNING_AS_ERROR ${WYE_WERROR})
  endif()
  if(WYE_SANITIZE)
    # Only the libraries are optimized: with checks in it, other code takes three times as long to compile.
    target_compile_options(${target} PRIVATE
      -fsanitize=${WYE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O0)
    target_link_options(${target} PRIVATE -fsanitize=${WYE_SANITIZE})
  endif()
endfunction()

# wye_library_options(<target>): for code of a library that consumers link: position independent, hidden, and
# without GNU_UNIQUE symbols, which would keep a plug-in mapped after dlclose.
function(wye_library_options target)
  wye_options(${target})
  if(WYE_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${target} PRIVATE WYE_BUILDING)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
endfunction()

# wye_internal_options(<target>): for object libraries of the core, which see src/.
function(wye_internal_options target)
  wye_library_options(${target})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${wye_generated} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE fmt::fmt-header-only)
endfunction()

# wye_room(<target> <folder>): the object library of one folder.
function(wye_room target folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*/*.cpp)
  add_library(${target} OBJECT ${sources})
  wye_internal_options(${target})
  set_property(GLOBAL APPEND PROPERTY wye_objects $<TARGET_OBJECTS:${target}>)
endfunction()

# wye_needs(<target> <library>...): a room sees these libraries, and targets with its objects link them.
function(wye_needs target)
  target_link_libraries(${target} PRIVATE ${ARGN})
  set_property(GLOBAL APPEND PROPERTY wye_libraries ${ARGN})
endfunction()

# wye_public_library(<target> <library>...): a library that consumers link. The other libraries are its own business.
function(wye_public_library target)
  wye_library_options(${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    DEBUG_POSTFIX d)
  # The loader unmaps a plug-in only if it has no unique symbol. Without optimization, converting a std::vector to a std::span makes
  # unique symbols of libstdc++. Programs are never unmapped.
  target_compile_options(${target} INTERFACE
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>>:-fno-gnu-unique>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    # A library that links the archive does not export it. A Debug build adds a d.
    target_link_options(${target} INTERFACE LINKER:--exclude-libs,lib${target}.a:lib${target}d.a)
  elseif(type STREQUAL SHARED_LIBRARY)
    # Symbols of static archives inside stay inside; nothing may be left undefined.
    set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${exports})
    target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL LINKER:--version-script=${exports})
    if(NOT WYE_SANITIZE)
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
  endif()
endfunction()

# wye_watch_driver(<test>...): these fail if Vulkan's validation, which tests/run.sh switches on, reports anything.
function(wye_watch_driver)
  set_tests_properties(${ARGN} PROPERTIES FAIL_REGULAR_EXPRESSION "VUID-|SYNC-HAZARD|UNASSIGNED-")
endfunction()

# wye_driver_may_leak(<test>...): tests of programs that do nothing about what a driver leaks. lavapipe 22.3 leaks 128
# bytes, NVRTC 13.0 71 KiB, and once one is unloaded no suppression can name it; the rooms' test programs keep them loaded
# and look for leaks.
function(wye_driver_may_leak)
  if(WYE_SANITIZE MATCHES address)
    set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
endfunction()

# wye_find_slang(<test>...): these find Slang's compiler, where cmake/wheels.sh has fetched it, as any program finds it that
# is started with this search path.
set(wye_slang_folder ${PROJECT_SOURCE_DIR}/build/wheels/slang/slangpy)
function(wye_find_slang)
  if(EXISTS ${wye_slang_folder})
    set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT_MODIFICATION
      LD_LIBRARY_PATH=path_list_prepend:${wye_slang_folder})
  endif()
endfunction()
