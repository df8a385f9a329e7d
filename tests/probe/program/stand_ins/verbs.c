/*
 * A stand-in for libibverbs.so.1, compiled with rdma-core's own header: a reliable connection inside one process, which
 * enforces the rules that the payload must follow (the attributes of each state, keys, addresses, posted receives).
 * RDMA WRITEs also reach another process of this machine, whose number the number of a queue pair has in its upper bits.
 *
 * VERBS_DEVICES names the devices. Settings: link_layer, 1 InfiniBand and 2 Ethernet; port_state; active_mtu; pkey; gids, the
 * number of GIDs; flid; wc_status and vendor_err of completions; silent, whether completions are missing; corrupt, whether a
 * byte changes in transit; warns; ipc_lock, whether the limit on locked memory is lifted; peermem and dmabuf, whether GPU
 * memory can be registered.
 */
#define _GNU_SOURCE
#include "stand_in.h"
#include <errno.h>
#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* The functions themselves, which the header wraps in macros. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

#define DEVICES 4
#define MOST 16
#define GID_TABLE 8
#define GPU_MEMORY 0x10000ULL /* as in cuda.c */

#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
		  IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		  IBV_QP_MAX_QP_RD_ATOMIC)
#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

#define FAIL_IF_ASKED(function)                                                \
	do {                                                                   \
		errno = setting(#function, 0);                                 \
		if (errno)                                                     \
			return NULL;                                           \
	} while (0)

/* Like libibverbs, contains the paths of its providers as text (see provider_places of the payload). */
#ifndef CONFIG_FOLDER
#define CONFIG_FOLDER "/etc/libibverbs.d"
#endif
#ifndef LIBRARY_PATTERN
#define LIBRARY_PATTERN "lib%s-rdmav34.so"
#endif
__attribute__((used)) static const char places[] = "\0" CONFIG_FOLDER "\0" LIBRARY_PATTERN;

struct queue_pair {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
	struct ibv_sge receive;
	int is_made, has_receive;
};

static struct ibv_device devices[DEVICES], *device_list[DEVICES + 1];
static struct queue_pair pairs[MOST];
static struct ibv_mr regions[MOST];
static struct ibv_wc completions[MOST];
static int completion_count;

static int is_ethernet(void)
{
	return setting("link_layer", IBV_LINK_LAYER_ETHERNET) == IBV_LINK_LAYER_ETHERNET;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	char names[256];

	FAIL_IF_ASKED(ibv_get_device_list);
	snprintf(names, sizeof names, "%s", getenv("VERBS_DEVICES") ? getenv("VERBS_DEVICES") : "");
	*count = 0;
	for (char *name = strtok(names, ","); name && *count < DEVICES; name = strtok(NULL, ",")) {
		struct ibv_device *device = device_list[*count] = &devices[*count];

		snprintf(device->name, sizeof device->name, "%s", name);
		(*count)++;
	}
	if (setting("warns", 0) && getenv("IBV_SHOW_WARNINGS"))
		fprintf(stderr, "libibverbs: Warning: no userspace device-specific driver found for rxe9\n");
	return device_list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static struct ibv_mr *new_region(struct ibv_pd *pd, void *address, size_t length)
{
	static int used;
	struct ibv_mr *region = &regions[used++ % MOST];

	region->context = pd->context;
	region->pd = pd;
	region->addr = address;
	region->length = length;
	region->lkey = 0x100 + used;
	region->rkey = 0x200 + used;
	return region;
}

/* True if the region with this local or remote key covers the range. */
static int is_registered(uint32_t key, int is_remote, uint64_t address, uint64_t length)
{
	for (struct ibv_mr *region = regions; region < regions + MOST; region++) {
		uint64_t start = (uint64_t)region->addr;

		if (region->length && key == (is_remote ? region->rkey : region->lkey))
			return address >= start && address + length <= start + region->length;
	}
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct rlimit limit;

	(void)access;
	FAIL_IF_ASKED(ibv_reg_mr);
	if ((uint64_t)address == GPU_MEMORY && !setting("peermem", 0)) {
		errno = EFAULT;
		return NULL;
	}
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY && length > limit.rlim_cur && !setting("ipc_lock", 0)) {
		errno = ENOMEM;
		return NULL;
	}
	return new_region(pd, address, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)offset, (void)access;
	FAIL_IF_ASKED(ibv_reg_dmabuf_mr);
	if (!setting("dmabuf", 1) || fd < 0) {
		errno = setting("dmabuf", 1) ? EBADF : EOPNOTSUPP;
		return NULL;
	}
	return new_region(pd, (void *)iova, length);
}

int ibv_dereg_mr(struct ibv_mr *region)
{
	memset(region, 0, sizeof *region);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
	(void)context;
	RETURN_IF_ASKED(ibv_query_device, int);
	memset(attributes, 0, sizeof *attributes);
	strcpy(attributes->fw_ver, "0.0.0");
	attributes->vendor_id = 0xffffff;
	attributes->phys_port_cnt = 1;
	attributes->max_qp = 1048560;
	attributes->max_cq = 1048576;
	attributes->max_mr = 524287;
	attributes->max_mr_size = UINT64_MAX;
	return 0;
}

/* The symbol, which fills only the members that IBVERBS_1.1 had. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compatible)
{
	struct ibv_port_attr attributes = {
		.state = (enum ibv_port_state)setting("port_state", IBV_PORT_ACTIVE),
		.max_mtu = IBV_MTU_4096,
		.active_mtu = (enum ibv_mtu)setting("active_mtu", IBV_MTU_1024),
		.gid_tbl_len = GID_TABLE,
		.pkey_tbl_len = 2,
		.lid = is_ethernet() ? 0 : 5,
		.sm_lid = is_ethernet() ? 0 : 1,
		.link_layer = (uint8_t)setting("link_layer", IBV_LINK_LAYER_ETHERNET),
	};

	(void)context;
	RETURN_IF_ASKED(ibv_query_port, int);
	if (port != 1)
		return EINVAL;
	memcpy(compatible, &attributes, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

/* The GIDs of a Soft-RoCE device: a link-local one, and one that holds an IPv4 address. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	static const uint8_t table[2][16] = {
		{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x01 },
		{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x0a, 0x4d, 0x00, 0x01 },
	};

	(void)context;
	RETURN_IF_ASKED(ibv_query_gid, int);
	if (port != 1 || index >= GID_TABLE)
		return EINVAL;
	memset(gid, 0, sizeof *gid);
	if (index < setting("gids", 2))
		memcpy(gid->raw, table[index], sizeof gid->raw);
	if (setting("flid", 0))
		gid->raw[4] = 0x12;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context, (void)port;
	RETURN_IF_ASKED(ibv_query_pkey, int);
	*pkey = index == 0 ? 0xffff : 0;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	static struct ibv_pd pd;

	FAIL_IF_ASKED(ibv_alloc_pd);
	pd.context = context;
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel,
			     int vector)
{
	static struct ibv_cq cq;

	(void)cq_context, (void)channel, (void)vector;
	FAIL_IF_ASKED(ibv_create_cq);
	/* Fails for a queue long enough for a ping, but not for a single entry. */
	if (entries > 1) {
		errno = setting("long_cq_fails", 0);
		if (errno)
			return NULL;
	}
	cq.context = context;
	cq.cqe = entries;
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	completion_count = 0;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
	FAIL_IF_ASKED(ibv_create_qp);
	for (struct queue_pair *pair = pairs; pair < pairs + MOST; pair++) {
		if (pair->is_made)
			continue;
		memset(pair, 0, sizeof *pair);
		pair->is_made = 1;
		pair->qp.context = pd->context;
		pair->qp.pd = pd;
		pair->qp.send_cq = wanted->send_cq;
		pair->qp.recv_cq = wanted->recv_cq;
		pair->qp.qp_type = wanted->qp_type;
		pair->qp.qp_num = ((uint32_t)getpid() << 8) + 0x11 + (uint32_t)(pair - pairs);
		pair->qp.state = IBV_QPS_RESET;
		return &pair->qp;
	}
	errno = ENOMEM;
	return NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	((struct queue_pair *)qp)->is_made = 0;
	return 0;
}

/* True if the address reaches the peer: by GID on Ethernet, where the local GID must exist; by LID on InfiniBand. */
static int check_address(struct ibv_qp *qp, const struct ibv_ah_attr *address)
{
	union ibv_gid own, empty = { { 0 } };

	if (!is_ethernet())
		return !address->is_global && address->dlid == 5 ? 0 : EINVAL;
	if (!address->is_global || ibv_query_gid(qp->context, address->port_num, address->grh.sgid_index, &own))
		return EINVAL;
	if (!memcmp(&own, &empty, sizeof own))
		return ENODATA;
	return memcmp(&own, &address->grh.dgid, sizeof own) ? ETIMEDOUT : 0;
}

/* A state transition requires exactly the attributes in the specification of reliable connections. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct queue_pair *pair = (struct queue_pair *)qp;
	int result = 0;

	if (attr->qp_state == IBV_QPS_INIT && qp->state == IBV_QPS_RESET && mask == INIT_MASK)
		result = setting("init_fails", 0);
	else if (attr->qp_state == IBV_QPS_RTR && qp->state == IBV_QPS_INIT && mask == RTR_MASK)
		result = check_address(qp, &attr->ah_attr);
	else if (attr->qp_state != IBV_QPS_RTS || qp->state != IBV_QPS_RTR || mask != RTS_MASK)
		result = EINVAL;
	if (result)
		return result;
	if (attr->qp_state == IBV_QPS_RTR)
		pair->attr = *attr;
	qp->state = attr->qp_state;
	return 0;
}

static void complete(const struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc *completion = &completions[completion_count++ % MOST];

	memset(completion, 0, sizeof *completion);
	completion->status = status;
	completion->vendor_err = (uint32_t)setting("vendor_err", 0);
	completion->qp_num = qp->qp_num;
}

static struct queue_pair *peer_of(const struct queue_pair *pair)
{
	for (struct queue_pair *other = pairs; other < pairs + MOST; other++)
		if (other->is_made && other->qp.qp_num == pair->attr.dest_qp_num && other->qp.state >= IBV_QPS_RTR)
			return other;
	return NULL;
}

static void copy(uint64_t to, const struct ibv_sge *from)
{
	memcpy((void *)to, (void *)from->addr, from->length);
	if (setting("corrupt", 0))
		((char *)to)[0] ^= 1;
}

/* RDMA WRITE into the memory of another process, which does not check its keys. */
static enum ibv_wc_status carry_far(pid_t pid, const struct ibv_send_wr *request)
{
	struct iovec from = { (void *)request->sg_list->addr, request->sg_list->length };
	struct iovec to = { (void *)request->wr.rdma.remote_addr, request->sg_list->length };

	if (process_vm_writev(pid, &from, 1, &to, 1, 0) != (ssize_t)from.iov_len)
		return IBV_WC_REM_ACCESS_ERR;
	if (setting("corrupt", 0)) {
		from.iov_base = "corrupt";
		from.iov_len = to.iov_len = 7;
		process_vm_writev(pid, &from, 1, &to, 1, 0);
	}
	return IBV_WC_SUCCESS;
}

/* Copies the data of a request to the peer at once, and returns the completion status. */
static enum ibv_wc_status carry(const struct queue_pair *pair, const struct ibv_send_wr *request)
{
	struct queue_pair *peer = peer_of(pair);
	pid_t pid = (pid_t)(pair->attr.dest_qp_num >> 8);
	const struct ibv_sge *from = request->sg_list;

	if (setting("wc_status", IBV_WC_SUCCESS))
		return (enum ibv_wc_status)setting("wc_status", IBV_WC_SUCCESS);
	if (!is_registered(from->lkey, 0, from->addr, from->length))
		return IBV_WC_LOC_PROT_ERR;
	if (pid != getpid() && request->opcode == IBV_WR_RDMA_WRITE)
		return carry_far(pid, request);
	if (!peer)
		return IBV_WC_RETRY_EXC_ERR;
	if (request->opcode == IBV_WR_RDMA_WRITE) {
		if (!is_registered(request->wr.rdma.rkey, 1, request->wr.rdma.remote_addr, from->length))
			return IBV_WC_REM_ACCESS_ERR;
		copy(request->wr.rdma.remote_addr, from);
		return IBV_WC_SUCCESS;
	}
	if (!peer->has_receive || peer->receive.length < from->length)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	copy(peer->receive.addr, from);
	peer->has_receive = 0;
	complete(&peer->qp, IBV_WC_SUCCESS);
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **rejected)
{
	struct queue_pair *pair = (struct queue_pair *)qp;

	*rejected = request;
	RETURN_IF_ASKED(post_send, int);
	if (qp->state != IBV_QPS_RTS || request->num_sge != 1 || !(request->send_flags & IBV_SEND_SIGNALED))
		return EINVAL;
	if (!setting("silent", 0))
		complete(qp, carry(pair, request));
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **rejected)
{
	struct queue_pair *pair = (struct queue_pair *)qp;
	const struct ibv_sge *to = request->sg_list;

	*rejected = request;
	RETURN_IF_ASKED(post_recv, int);
	if (qp->state < IBV_QPS_INIT || request->num_sge != 1 || !is_registered(to->lkey, 0, to->addr, to->length))
		return EINVAL;
	pair->receive = *to;
	pair->has_receive = 1;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *found)
{
	(void)cq;
	if (setting("poll_cq", 0)) {
		errno = setting("poll_cq", 0);
		return -1;
	}
	if (!completion_count || room < 1)
		return 0;
	*found = completions[--completion_count];
	return 1;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	static struct ibv_context contexts[DEVICES];
	struct ibv_context *context = &contexts[device - devices];

	FAIL_IF_ASKED(ibv_open_device);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	context->device = device;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.poll_cq = poll_cq;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}
