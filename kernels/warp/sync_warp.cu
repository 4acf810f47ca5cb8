// Two warps work on their own halves of shared memory: a warp barrier is enough between the
// write and the read, as no other warp is involved.
extern "C" __global__ void sync_warp(const int* x, int* y)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    y[t] = s[t ^ 1] - s[t ^ 16];
}
