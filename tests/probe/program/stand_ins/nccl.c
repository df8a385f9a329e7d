/* A stand-in for libnccl.so.2, of which the payload calls one function. Setting: nccl, the version as NCCL numbers it. */
#include "stand_in.h"

int ncclGetVersion(int *version)
{
	RETURN_IF_ASKED(ncclGetVersion, int);
	*version = setting("nccl", 22809);
	return 0;
}
