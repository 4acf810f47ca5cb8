// Naive transpose: reads run along rows, writes along columns.
extern "C" __global__ void transpose_naive(const int* a, int* b)
{
    int x = threadIdx.x;
    int y = threadIdx.y;
    b[x * blockDim.y + y] = a[y * blockDim.x + x];
}
