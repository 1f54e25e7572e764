// Takes the place of libvulkan.so.1, and writes each buffer that a program creates and destroys to the file $RECORD:
// "+ HANDLE BYTES" and "- HANDLE". WYE_REAL_VULKAN is the path of the driver's loader.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr of_instance;
static PFN_vkGetDeviceProcAddr of_device;
static PFN_vkCreateBuffer create_buffer;
static PFN_vkDestroyBuffer destroy_buffer;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE* file;

static void write_event(char sign, VkBuffer buffer, VkDeviceSize bytes) {
  pthread_mutex_lock(&mutex);
  if (!file) file = fopen(getenv("RECORD"), "w");
  if (file) fprintf(file, "%c %llx %llu\n", sign, (unsigned long long)buffer, (unsigned long long)bytes);
  if (file) fflush(file);
  pthread_mutex_unlock(&mutex);
}

static VkResult on_create(VkDevice device, const VkBufferCreateInfo* info,
                          const VkAllocationCallbacks* callbacks, VkBuffer* buffer) {
  const VkResult result = create_buffer(device, info, callbacks, buffer);
  if (result == VK_SUCCESS) write_event('+', *buffer, info->size);
  return result;
}

static void on_destroy(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* callbacks) {
  if (buffer) write_event('-', buffer, 0);
  destroy_buffer(device, buffer, callbacks);
}

static PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction real);

static PFN_vkVoidFunction get_of_device(VkDevice device, const char* name) {
  return replaced(name, of_device(device, name));
}

__attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                                const char* name) {
  if (!of_instance) {
    void* const loader = dlopen(getenv("WYE_REAL_VULKAN"), RTLD_NOW | RTLD_LOCAL);
    of_instance = (PFN_vkGetInstanceProcAddr)dlsym(loader, "vkGetInstanceProcAddr");
  }
  return replaced(name, of_instance(instance, name));
}

static PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction real) {
  if (!real) return NULL;
  if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (PFN_vkVoidFunction)vkGetInstanceProcAddr;
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
    of_device = (PFN_vkGetDeviceProcAddr)real;
    return (PFN_vkVoidFunction)get_of_device;
  }
  if (strcmp(name, "vkCreateBuffer") == 0) {
    create_buffer = (PFN_vkCreateBuffer)real;
    return (PFN_vkVoidFunction)on_create;
  }
  if (strcmp(name, "vkDestroyBuffer") == 0) {
    destroy_buffer = (PFN_vkDestroyBuffer)real;
    return (PFN_vkVoidFunction)on_destroy;
  }
  return real;
}
