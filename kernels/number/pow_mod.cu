// Square and multiply: base to the exponent modulo a 16-bit modulus.
extern "C" __global__ void pow_mod(const unsigned* base, const unsigned* exponent, unsigned modulus, unsigned* result)
{
    unsigned b = base[threadIdx.x] % modulus;
    unsigned e = exponent[threadIdx.x];
    unsigned r = 1;
    #pragma unroll 1
    while (e != 0) {
        if (e & 1)
            r = r * b % modulus;
        b = b * b % modulus;
        e >>= 1;
    }
    result[threadIdx.x] = r;
}
