// 64-bit sums and differences: the carry crosses from the low word into the high word.
extern "C" __global__ void sum64(const unsigned long long* a, const unsigned long long* b, unsigned long long* sum, unsigned long long* difference)
{
    int i = threadIdx.x;
    sum[i] = a[i] + b[i];
    difference[i] = a[i] - b[i];
}
