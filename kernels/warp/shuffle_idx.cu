// Indexed shuffle: any lane may be read, so it permutes and broadcasts.
extern "C" __global__ void shuffle_idx(const int* x, const int* source, int* permuted, int* broadcast)
{
    int lane = threadIdx.x;
    int v = x[lane];
    permuted[lane] = __shfl_sync(0xffffffffu, v, source[lane]);
    broadcast[lane] = __shfl_sync(0xffffffffu, v, 5);
}
