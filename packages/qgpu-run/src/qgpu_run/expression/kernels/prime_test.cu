// Prime or not: Miller and Rabin's test to bases that decide: 2; 2, 3; or 2, 7, 61, by size.
__device__ static unsigned reduced_product(unsigned x, unsigned y, unsigned n, unsigned inverse)
{
    // Montgomery: x * y / 2^32 modulo n, which is odd and below 2^31.
    unsigned low = x * y;
    unsigned part = low * inverse;
    unsigned r = __umulhi(x, y) - __umulhi(part, n);
    return (int)r < 0 ? r + n : r;
}

extern "C" __global__ void prime_test(const int* x, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    unsigned odd = v | 1;
    bool prime = v > 2 && (v & 1);
    unsigned m = prime ? odd : 9;
    unsigned inverse = m * 3 ^ 2;
    inverse *= 2 - m * inverse;
    inverse *= 2 - m * inverse;
    inverse *= 2 - m * inverse;
    unsigned one = (0u - m) % m;
    unsigned minus_one = m - one;
    int twos = __clz(__brev(m - 1)) & 31;
    #pragma unroll 1
    for (int base = 2; base != 0 && prime;) {
        unsigned b = 0;
        #pragma unroll 1
        for (int bit = base == 61 ? 32 : 4; bit != 0; bit >>= 1) {
            b += b;
            b = b >= m ? b - m : b;
            if (base & bit) {
                b += one;
                b = b >= m ? b - m : b;
            }
        }
        unsigned power = one;
        // A base that m divides tells nothing.
        bool passes = b == 0;
        // The last odd power must be 1, or it or one of its squares -1.
        #pragma unroll 1
        for (unsigned bit = 0x80000000u >> (__clz(m) & 31); bit != 1 && !passes; bit >>= 1) {
            power = reduced_product(power, power, m, inverse);
            if (m & bit)
                power = reduced_product(power, b, m, inverse);
            unsigned left = bit >> twos;
            passes = left <= 1 && power == minus_one || left == 1 && power == one;
        }
        prime = passes;
        if (base == 2)
            base = v < 2047 ? 0 : v < 1373653 ? 3 : 7;
        else
            base = base == 7 ? 61 : 0;
    }
    y[i] = prime || v == 2;
}
