# What each workload uses besides `steps`, `rows` and its own files: <n>.cpp, <n>_cpu.cpp, <n>_reference.cpp, its header and
# shaders/<n>.
set(attention_uses cudnn matmul softmax)
set(attention_weights_uses softmax)
set(matmul_uses cublas cublaslt epilogue)
set(similarity_uses matmul normalize)

# wye_with_used_workloads(<variable> <workload>...): sets the variable to the names of the workloads' files, and of those that
# they use.
function(wye_with_used_workloads variable)
  foreach(name IN LISTS ARGN)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/include/wye/workloads/${name}.hpp)
      message(FATAL_ERROR "WYE_WORKLOADS has no workload of wye: '${name}'.")
    endif()
  endforeach()
  set(found steps rows)
  set(left ${ARGN})
  while(left)
    list(POP_FRONT left name)
    if(NOT name IN_LIST found)
      list(APPEND found ${name})
      list(APPEND left ${${name}_uses})
    endif()
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
