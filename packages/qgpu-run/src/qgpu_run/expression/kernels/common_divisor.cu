// Greatest common divisor without divisions, or the least common multiple by way of it.
extern "C" __global__ void common_divisor(
    const int* a, const int* b, int* c, int* error, int multiple, int step_a, int step_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int first = a[i * step_a];
    int second = b[i * step_b];
    unsigned x = first < 0 ? 0u - first : first;
    unsigned y = second < 0 ? 0u - second : second;
    unsigned product = x;
    unsigned other = y;
    unsigned twos = __clz(__brev(x | y)) & 31;
    // Both odd, or zero; what the loop takes from one is even.
    x >>= __clz(__brev(x)) & 31;
    y >>= __clz(__brev(y)) & 31;
    #pragma unroll 1
    while (x != 0 && y != 0) {
        unsigned small = min(x, y);
        y = max(x, y) - small;
        y >>= __clz(__brev(y)) & 31;
        x = small;
    }
    unsigned r = (x | y) << twos;
    unsigned overflow = 0;
    if (multiple) {
        unsigned factor = other / max(r, 1u);
        r = product * factor;
        overflow = __umulhi(product, factor);
    }
    c[i] = r;
    if (overflow != 0 || r > 0x7fffffffu)
        *error = 1;
}
