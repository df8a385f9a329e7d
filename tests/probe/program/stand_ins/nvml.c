/*
 * A stand-in for libnvidia-ml.so.1: NVIDIA H200, with the values of a recording (fixtures/probe/h200-x2/quick.jsonl).
 *
 * Settings: gpus; lost, the index of a GPU that does not respond; links of each GPU, and link_to: 0 another GPU, 2 a
 * switch, 255 hidden; link_fails, a link with an unknown state; mig, whether GPUs are partitioned; health, the fabric's mask;
 * field_type, the type of a field's value; affinity, the first word of a set; processes, their number, and pid, the ID of
 * the first; busy, in percent.
 */
#include "stand_in.h"
#include <nvml.h>

#define GPUS 8
#define WHOLE -1
#define MIG_SLOTS 7
#define CHECK(function) RETURN_IF_ASKED(function, nvmlReturn_t)

struct nvmlDevice_st {
	int index, instance;
};

static struct nvmlDevice_st handles[GPUS][MIG_SLOTS + 1];

static nvmlDevice_t handle(int index, int instance)
{
	nvmlDevice_t device = &handles[index][instance + 1];

	device->index = index;
	device->instance = instance;
	return device;
}

static nvmlReturn_t write_text(char *text, unsigned int length, const char *answer)
{
	return snprintf(text, length, "%s", answer) < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static void write_address(nvmlPciInfo_t *pci, int index)
{
	memset(pci, 0, sizeof *pci);
	pci->device = 6 + index;
	snprintf(pci->busId, sizeof pci->busId, "00000000:00:%02X.0", 6 + index);
}

/* A function that writes one number about a GPU. */
#define NUMBER(function, type, number)                                         \
	nvmlReturn_t function(nvmlDevice_t device, type *answer)               \
	{                                                                      \
		(void)device;                                                  \
		CHECK(function);                                               \
		*answer = (type)(number);                                      \
		return NVML_SUCCESS;                                           \
	}

/* A function that writes one number about a GPU, chosen by a further parameter. */
#define CHOICE(function, which_type, type, number)                             \
	nvmlReturn_t function(nvmlDevice_t device, which_type which, type *answer) \
	{                                                                      \
		(void)device, (void)which;                                     \
		CHECK(function);                                               \
		*answer = (type)(number);                                      \
		return NVML_SUCCESS;                                           \
	}

#define UNSUPPORTED(function, type)                                            \
	nvmlReturn_t function(nvmlDevice_t device, type *answer)               \
	{                                                                      \
		(void)device, (void)answer;                                    \
		CHECK(function);                                               \
		return NVML_ERROR_NOT_SUPPORTED;                               \
	}

nvmlReturn_t nvmlInit_v2(void)
{
	CHECK(nvmlInit_v2);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	CHECK(nvmlSystemGetDriverVersion);
	return write_text(version, length, "580.159.04");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	CHECK(nvmlSystemGetNVMLVersion);
	return write_text(version, length, "13.580.159.04");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	CHECK(nvmlSystemGetCudaDriverVersion_v2);
	*version = 13000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	CHECK(nvmlDeviceGetCount_v2);
	*count = setting("gpus", 2);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	CHECK(nvmlDeviceGetHandleByIndex_v2);
	if (index == setting("lost", WHOLE))
		return NVML_ERROR_GPU_IS_LOST;
	if (index >= setting("gpus", 2) || index >= GPUS)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = handle(index, WHOLE);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[48];

	CHECK(nvmlDeviceGetUUID);
	if (device->instance == WHOLE)
		snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", device->index + 1);
	else
		snprintf(text, sizeof text, "MIG-00000000-0000-0000-%04d-%012d", device->instance + 1, device->index + 1);
	return write_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	CHECK(nvmlDeviceGetName);
	return write_text(name, length, device->instance == WHOLE ? "NVIDIA H200" : "NVIDIA H200 MIG 1g.18gb");
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
	(void)device;
	CHECK(nvmlDeviceGetSerial);
	return write_text(serial, length, "0000000000000");
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	CHECK(nvmlDeviceGetPciInfo_v3);
	write_address(pci, device->index);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	(void)device;
	CHECK(nvmlDeviceGetCudaComputeCapability);
	*major = 9;
	*minor = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	(void)device;
	CHECK(nvmlDeviceGetMemoryInfo_v2);
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->total = 150754820096;
	memory->reserved = 644939776;
	memory->free = 150109880320;
	memory->used = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	(void)device;
	CHECK(nvmlDeviceGetUtilizationRates);
	utilization->gpu = setting("busy", 0);
	utilization->memory = utilization->gpu / 2;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	(void)device;
	CHECK(nvmlDeviceGetMigMode);
	*current = *pending = setting("mig", 0);
	return NVML_SUCCESS;
}

/* Two instances, in slots that are not adjacent. */
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance)
{
	CHECK(nvmlDeviceGetMigDeviceHandleByIndex);
	if (!setting("mig", 0) || (index != 0 && index != 3))
		return NVML_ERROR_NOT_FOUND;
	*instance = handle(device->index, index);
	return NVML_SUCCESS;
}

NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, MIG_SLOTS)
NUMBER(nvmlDeviceGetGpuInstanceId, unsigned int, device->instance + 7)
NUMBER(nvmlDeviceGetComputeInstanceId, unsigned int, 0)
NUMBER(nvmlDeviceGetMinorNumber, unsigned int, device->index)
NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, NVML_DEVICE_ARCH_HOPPER)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, setting("persistence", NVML_FEATURE_ENABLED))
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, setting("compute_mode", 0))
NUMBER(nvmlDeviceGetPowerUsage, unsigned int, 79007)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, 700000)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, setting("clocks_reasons", 1))
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, setting("clocks_reasons", 1))
UNSUPPORTED(nvmlDeviceGetNumaNodeId, unsigned int)
UNSUPPORTED(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t)

CHOICE(nvmlDeviceGetClockInfo, nvmlClockType_t, unsigned int, which == NVML_CLOCK_MEM ? 3201 : 345)
CHOICE(nvmlDeviceGetMaxClockInfo, nvmlClockType_t, unsigned int, which == NVML_CLOCK_MEM ? 3201 : 1980)
CHOICE(nvmlDeviceGetApplicationsClock, nvmlClockType_t, unsigned int, which == NVML_CLOCK_MEM ? 3201 : 1980)
CHOICE(nvmlDeviceGetTemperature, nvmlTemperatureSensors_t, unsigned int, 38)
CHOICE(nvmlDeviceGetTemperatureThreshold, nvmlTemperatureThresholds_t, unsigned int,
       which == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? 95 : 89)

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	(void)device;
	CHECK(nvmlDeviceGetEccMode);
	*current = *pending = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
					 unsigned long long *count)
{
	(void)device;
	CHECK(nvmlDeviceGetTotalEccErrors);
	/* With the setting ecc_errors, a different number for each of the four: 100 is volatile corrected, 111 aggregate uncorrected. */
	*count = setting("ecc_errors", 0) ? 100 + 10 * counter + type : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
				       unsigned int *pending, unsigned int *failure)
{
	(void)device;
	CHECK(nvmlDeviceGetRemappedRows);
	*corrected = 0;
	*uncorrected = *pending = setting("remapped", 0);
	*failure = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
				       unsigned long long *addresses)
{
	(void)device, (void)cause, (void)count, (void)addresses;
	CHECK(nvmlDeviceGetRetiredPages);
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	unsigned int room = *count;

	(void)device;
	CHECK(nvmlDeviceGetComputeRunningProcesses_v3);
	*count = setting("processes", 0);
	for (unsigned int process = 0; process < *count && process < room; process++)
		infos[process] = (nvmlProcessInfo_t){ .pid = setting("pid", 1) + process,
						      .usedGpuMemory = process ? -1ULL : 1ULL << 30 };
	return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	(void)device;
	CHECK(nvmlDeviceGetFieldValues);
	for (nvmlFieldValue_t *field = values; field < values + count; field++) {
		field->nvmlReturn = NVML_SUCCESS;
		field->valueType = (nvmlValueType_t)setting("field_type", NVML_VALUE_TYPE_UNSIGNED_INT);
		if (field->fieldId == NVML_FI_DEV_MEMORY_TEMP)
			field->value.uiVal = 41;
		else if (field->fieldId == NVML_FI_DEV_NVLINK_GET_SPEED)
			field->value.uiVal = 26562;
		else
			field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_SUCCESS;
}

static nvmlReturn_t check_link(unsigned int link)
{
	return link < setting("links", 18) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
	(void)device;
	CHECK(nvmlDeviceGetNvLinkState);
	if (link == setting("link_fails", WHOLE))
		return NVML_ERROR_GPU_IS_LOST;
	*active = link == setting("link_down", WHOLE) ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
	return check_link(link);
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
	(void)device;
	CHECK(nvmlDeviceGetNvLinkVersion);
	*version = 6;
	return check_link(link);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type)
{
	(void)device;
	CHECK(nvmlDeviceGetNvLinkRemoteDeviceType);
	*type = (nvmlIntNvLinkDeviceType_t)setting("link_to", NVML_NVLINK_DEVICE_TYPE_SWITCH);
	return check_link(link);
}

/* The other one of two GPUs. A switch has no address that is visible in a virtual machine. */
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	CHECK(nvmlDeviceGetNvLinkRemotePciInfo_v2);
	write_address(pci, device->index ^ 1);
	if (setting("link_to", NVML_NVLINK_DEVICE_TYPE_SWITCH) != NVML_NVLINK_DEVICE_TYPE_GPU)
		strcpy(pci->busId, "FFFFFFFF:FF:FF.0");
	return check_link(link);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter,
					     unsigned long long *count)
{
	(void)device;
	CHECK(nvmlDeviceGetNvLinkErrorCounter);
	*count = counter == NVML_NVLINK_ERROR_DL_CRC_DATA ? link : 0;
	return check_link(link);
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *answer)
{
	nvmlGpuFabricInfo_v2_t *info = (nvmlGpuFabricInfo_v2_t *)answer;

	(void)device;
	CHECK(nvmlDeviceGetGpuFabricInfoV);
	if (info->version != nvmlGpuFabricInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memset(info->clusterUuid, 0, sizeof info->clusterUuid);
	info->status = (nvmlReturn_t)setting("fabric_status", NVML_SUCCESS);
	info->cliqueId = 0;
	info->state = setting("fabric_state", NVML_GPU_FABRIC_STATE_COMPLETED);
	info->healthMask = setting("health", 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level)
{
	(void)one, (void)other;
	CHECK(nvmlDeviceGetTopologyCommonAncestor);
	*level = (nvmlGpuTopologyLevel_t)setting("ancestor", NVML_TOPOLOGY_HOSTBRIDGE);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t capability,
				    nvmlGpuP2PStatus_t *status)
{
	int has_nvlink = setting("links", 18) > 0;
	int is_supported = capability == NVML_P2P_CAPS_INDEX_PCI ? !has_nvlink
			   : capability == NVML_P2P_CAPS_INDEX_NVLINK ? has_nvlink : 1;

	(void)one, (void)other;
	CHECK(nvmlDeviceGetP2PStatus);
	*status = is_supported ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set)
{
	(void)device;
	CHECK(nvmlDeviceGetCpuAffinity);
	memset(set, 0, words * sizeof *set);
	set[0] = setting("affinity", 0xffffffff);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set,
					 nvmlAffinityScope_t scope)
{
	(void)device, (void)scope;
	CHECK(nvmlDeviceGetMemoryAffinity);
	memset(set, 0, words * sizeof *set);
	set[0] = 1;
	return NVML_SUCCESS;
}
