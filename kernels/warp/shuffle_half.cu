// Only the lower half takes part: the mask names the 16 lanes that took the branch.
extern "C" __global__ void shuffle_half(const int* x, int* y)
{
    int lane = threadIdx.x;
    int v = x[lane];
    if (lane < 16)
        v += __shfl_xor_sync(0x0000ffffu, v, 15);
    y[lane] = v;
}
