/*
 * A stand-in for libcuda.so.1 with the GPUs of nvml.c.
 *
 * Settings: cuda_gpus, number of GPUs (default: as many as NVML); reversed, whether in reverse order; mig; peers, whether GPUs
 * reach each other; dmabuf, whether memory has a file descriptor; gpu_direct.
 */
#define _GNU_SOURCE
#include "stand_in.h"
#include <cuda.h>
#include <sys/mman.h>

/* Address of GPU memory, by which verbs.c recognizes it. It is below the lowest address that Linux lets a process map. */
#define GPU_MEMORY 0x10000ULL
#define CHECK(function)                                                        \
	do {                                                                   \
		RETURN_IF_ASKED(function, CUresult);                           \
		if (!initialized)                                              \
			return CUDA_ERROR_NOT_INITIALIZED;                     \
	} while (0)

static int initialized;
static CUcontext current;

static int device_count(void)
{
	return setting("cuda_gpus", setting("gpus", 2));
}

/* NVML's index of a device. */
static int nvml_index(CUdevice device)
{
	return setting("reversed", 0) ? device_count() - 1 - device : device;
}

CUresult cuInit(unsigned int flags)
{
	RETURN_IF_ASKED(cuInit, CUresult);
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_count() == 0)
		return CUDA_ERROR_NO_DEVICE;
	initialized = 1;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
		: error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
		: error == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
		: error == CUDA_ERROR_NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
		: error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	const char *name;
	CUresult result = cuGetErrorName(error, &name);

	*text = error == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected" : name;
	return result;
}

CUresult cuDriverGetVersion(int *version)
{
	RETURN_IF_ASKED(cuDriverGetVersion, CUresult);
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	CHECK(cuDeviceGetCount);
	*count = device_count();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CHECK(cuDeviceGet);
	if (ordinal >= device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	(void)device;
	CHECK(cuDeviceGetName);
	snprintf(name, length, "NVIDIA H200");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	CHECK(cuDeviceGetUuid_v2);
	memset(uuid->bytes, 0, sizeof uuid->bytes);
	uuid->bytes[9] = setting("mig", 0);
	uuid->bytes[15] = nvml_index(device) + 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice device)
{
	CHECK(cuDeviceGetPCIBusId);
	snprintf(address, length, "0000:00:%02X.0", 6 + nvml_index(device));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *answer, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	CHECK(cuDeviceGetAttribute);
	if (attribute == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)
		*answer = setting("dmabuf", 1);
	else if (attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED)
		*answer = setting("gpu_direct", 1);
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *answer, CUdevice device, CUdevice peer)
{
	CHECK(cuDeviceCanAccessPeer);
	*answer = device != peer && setting("peers", 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *answer, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
	CHECK(cuDeviceGetP2PAttribute);
	if (device == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	*answer = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : setting("peers", 1);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CHECK(cuDevicePrimaryCtxRetain);
	*context = (CUcontext)(size_t)(0x1000 + device);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	(void)device;
	CHECK(cuDevicePrimaryCtxRelease_v2);
	current = NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CHECK(cuCtxSetCurrent);
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
	(void)bytes;
	CHECK(cuMemAlloc_v2);
	if (!current)
		return CUDA_ERROR_INVALID_VALUE;
	*pointer = GPU_MEMORY;
	return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr pointer)
{
	CHECK(cuMemFree_v2);
	return pointer == GPU_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size, CUmemRangeHandleType type,
				       unsigned long long flags)
{
	CHECK(cuMemGetHandleForAddressRange);
	if (pointer != GPU_MEMORY || size == 0 || flags != 0 || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	if (!setting("dmabuf", 1))
		return CUDA_ERROR_NOT_SUPPORTED;
	*(int *)handle = memfd_create("gpu memory", MFD_CLOEXEC);
	return CUDA_SUCCESS;
}
