// Copies numbers in another order: `cols` in a row, from `start` on in two steps.
extern "C" __global__ void rearrange(
    const int* x, int* y, int start, int next_row, int step, int cols, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    y[i] = x[start + i / cols * next_row + i % cols * step];
}
