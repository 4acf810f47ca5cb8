// Adler-32 (as in zlib): two running sums modulo the largest 16-bit prime.
extern "C" __global__ void adler32(const unsigned char* text, unsigned* sum)
{
    unsigned a = 1;
    unsigned b = 0;
    #pragma unroll 1
    for (int i = 0; i < 8; ++i) {
        a = (a + text[threadIdx.x * 8 + i]) % 65521u;
        b = (b + a) % 65521u;
    }
    sum[threadIdx.x] = b << 16 | a;
}
