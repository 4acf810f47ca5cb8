// Any and all: every lane gets the same answer, packed here as two bits and a count.
extern "C" __global__ void vote_any_all(const int* x, int limit, int* y)
{
    int v = x[threadIdx.x];
    int some = __any_sync(0xffffffffu, v > limit);
    int every = __all_sync(0xffffffffu, v > 0);
    int none = __all_sync(0xffffffffu, v < 0);
    y[threadIdx.x] = (some ? 1 : 0) + (every ? 2 : 0) + (none ? 4 : 0);
}
