// Three-way order of signed 64-bit numbers, the signed minimum and the unsigned maximum.
extern "C" __global__ void compare64(const long long* a, const long long* b, int* order, long long* low, unsigned long long* high)
{
    int i = threadIdx.x;
    long long x = a[i];
    long long y = b[i];
    order[i] = (x > y) - (x < y);
    low[i] = x < y ? x : y;
    unsigned long long ux = x;
    unsigned long long uy = y;
    high[i] = ux > uy ? ux : uy;
}
