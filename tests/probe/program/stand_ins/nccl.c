/* A stand-in for libnccl.so.2 with the one function that the payload calls. Setting: nccl, the version in NCCL's numbering. */
#include "stand_in.h"

int ncclGetVersion(int *version)
{
	RETURN_IF_ASKED(ncclGetVersion, int);
	*version = setting("nccl", 22809);
	return 0;
}
