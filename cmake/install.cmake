# The rules of `cmake --install`. Install components: Runtime (shared libraries), Development, Tools.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/wye)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# wye_install_library(<target> <component>): a library with its headers, in an export of its own: a component is there
# where its file wye-<component>-targets.cmake is.
function(wye_install_library target component)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN)
  endif()
  install(TARGETS ${target} EXPORT wye-${component}-targets
    RUNTIME COMPONENT Runtime
    LIBRARY COMPONENT Runtime NAMELINK_COMPONENT Development
    ARCHIVE COMPONENT Development
    FILE_SET HEADERS COMPONENT Development)
  install(EXPORT wye-${component}-targets NAMESPACE wye:: DESTINATION ${package_folder} COMPONENT Development)
endfunction()

# wye_install_pkgconfig(<target> <name>): the same for pkg-config.
function(wye_install_pkgconfig target name)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig_folder} OUTPUT_VARIABLE up)
  string(REGEX REPLACE "/$" "" up "${up}")
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc.in @ONLY)
  # The name of the library has a postfix in a Debug build.
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/$<CONFIG>/${name}.pc INPUT ${PROJECT_BINARY_DIR}/${name}.pc.in
    TARGET ${target})
  install(FILES ${PROJECT_BINARY_DIR}/$<CONFIG>/${name}.pc DESTINATION ${pkgconfig_folder} COMPONENT Development)
endfunction()

# wye_install_program(<target> [EXPORT <export>]): a program that finds wye's libraries where they are installed.
function(wye_install_program target)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
      BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE libraries)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN/${libraries})
  endif()
  install(TARGETS ${target} ${ARGN} RUNTIME COMPONENT Tools)
endfunction()

# The consumer of a static wye links the libraries that wye uses.
set(requires_private "")
set(libs_private "")
set(workloads_requires_private "")
set(workloads_libs_private "")
set(models_requires_private "")
set(models_libs_private "")
set(records_libs_private "")
if(NOT WYE_BUILD_SHARED)
  set(requires_private libsodium)
  set(libs_private -pthread -ldl)
  set(hidden_archives $<TARGET_FILE_NAME:wye>)
  set(workloads_requires_private "libhwy libhwy-contrib")
  set(workloads_libs_private -Wl,--exclude-libs,$<TARGET_FILE_NAME:wye_workloads>)
  set(models_requires_private libutf8proc)
  set(models_libs_private -Wl,--exclude-libs,$<TARGET_FILE_NAME:wye_models>)
  set(records_libs_private -Wl,--exclude-libs,$<TARGET_FILE_NAME:wye_records>)
  if(TARGET unofficial::shaderc::shaderc)
    string(APPEND requires_private " shaderc")
  elseif(WYE_GLSL)
    get_target_property(shaderc wye_deps::shaderc INTERFACE_LINK_LIBRARIES)
    string(REGEX MATCHALL "lib[^/,>]+\\.a" archives "${shaderc}")
    list(APPEND hidden_archives ${archives})
    list(TRANSFORM archives PREPEND -l:)
    list(PREPEND libs_private -Wl,--start-group ${archives} -Wl,--end-group)
  endif()
  # A library that links the archives does not export them.
  list(JOIN hidden_archives ":" hidden_archives)
  list(APPEND libs_private -Wl,--exclude-libs,${hidden_archives})
endif()
list(JOIN libs_private " " libs_private)

# The components inside the library; the others are libraries of their own.
set(wye_features core)
foreach(feature IN ITEMS VULKAN GLSL CUDA SLANG)
  if(WYE_${feature})
    string(TOLOWER ${feature} feature)
    list(APPEND wye_features ${feature})
  endif()
endforeach()

wye_install_library(wye core)
wye_install_pkgconfig(wye wye)
if(TARGET wye_workloads)
  wye_install_library(wye_workloads workloads)
  wye_install_pkgconfig(wye_workloads wye-workloads)
endif()
if(TARGET wye_models)
  wye_install_library(wye_models models)
  wye_install_pkgconfig(wye_models wye-models)
endif()
if(TARGET wye_records)
  wye_install_library(wye_records records)
  wye_install_pkgconfig(wye_records wye-records)
endif()
if(TARGET wyec)
  wye_install_program(wyec EXPORT wye-tools-targets)
  wye_install_program(wye_program)
  install(EXPORT wye-tools-targets NAMESPACE wye:: DESTINATION ${package_folder} COMPONENT Tools)
endif()
if(TARGET wye_bench)
  wye_install_program(wye_bench)
endif()

configure_package_config_file(cmake/wyeConfig.cmake.in ${PROJECT_BINARY_DIR}/wyeConfig.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# While the major version is 0, each minor version is an interface of its own.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/wyeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/wyeConfig.cmake
  ${PROJECT_BINARY_DIR}/wyeConfigVersion.cmake
  cmake/Findwye_sodium.cmake
  cmake/Findwye_shaderc.cmake
  cmake/Findwye_utf8proc.cmake
  cmake/wye_kernels.cmake
  DESTINATION ${package_folder} COMPONENT Development)
# The pages link to each other and to the examples.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Development)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Development
  FILES_MATCHING REGEX "\\.(md|svg|png|cpp|hpp|comp|glsl)$")
