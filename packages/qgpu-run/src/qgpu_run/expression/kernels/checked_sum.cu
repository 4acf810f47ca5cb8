// Sums of rows: of the numbers (0), their mean (1), how many are not zero (2), how many (3).
extern "C" __global__ void checked_sum(
    const int* x, int* y, int* rest, int* error, int operation, int count, int step, int next_row,
    int parts, int n)
{
    __shared__ unsigned shared_total[8];
    __shared__ int shared_high[8];
    int i = parts > 1 ? 0 : blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    // The sum modulo 2^32, and that of the upper halves, which cannot overflow.
    unsigned total = 0;
    int high = 0;
    // Offsets are in bytes, so that the loop has one number to count.
    const char* row = (const char*)(x + i * next_row);
    unsigned k = parts > 1 ? 4 * step * threadIdx.x : 0;
    #pragma unroll 1
    do {
        int v = operation == 3 ? 1 : *(const int*)(row + k);
        if (operation == 2)
            v = v != 0;
        total += v;
        high += v >> 16;
        k += 4 * step * parts;
    } while (k < 4 * step * count);
    if (parts > 1) {
        shared_total[threadIdx.x] = total;
        shared_high[threadIdx.x] = high;
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        #pragma unroll 1
        for (int k = 1; k < parts; ++k) {
            total += shared_total[k];
            high += shared_high[k];
        }
    }
    // What the lower halves add up to is below 2^32.
    int r = total;
    high += total - (high << 16) >> 16;
    if (high != r >> 16)
        *error = 1;
    if (operation == 1) {
        int q = r / count;
        rest[i] = r - q * count;
        r = q;
    }
    y[i] = r;
}
