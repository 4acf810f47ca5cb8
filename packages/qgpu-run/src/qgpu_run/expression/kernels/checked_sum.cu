// Sums of rows: of the numbers (0), their mean (1), how many are not zero (2), how many (3).
extern "C" __global__ void checked_sum(
    const int* x, int* y, int* rest, int* error, int operation, int count, int step, int next_row,
    int parts, int n)
{
    __shared__ int shared_low[16];
    __shared__ int shared_high[16];
    int i = parts > 1 ? 0 : blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    // Of both halves of the numbers: neither sum can overflow.
    int low = 0;
    int high = 0;
    #pragma unroll 1
    for (int k = parts > 1 ? threadIdx.x : 0; k < count; k += parts) {
        int v = operation == 3 ? 1 : x[i * next_row + k * step];
        if (operation == 2)
            v = v != 0;
        low += v & 0xffff;
        high += v >> 16;
    }
    if (parts > 1) {
        shared_low[threadIdx.x] = low;
        shared_high[threadIdx.x] = high;
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        #pragma unroll 1
        for (int k = 1; k < parts; ++k) {
            low += shared_low[k];
            high += shared_high[k];
        }
    }
    high += low >> 16;
    int r = high << 16 | (low & 0xffff);
    if (high << 16 >> 16 != high)
        *error = 1;
    if (operation == 1) {
        int q = r / count;
        rest[i] = r - q * count;
        r = q;
    }
    y[i] = r;
}
