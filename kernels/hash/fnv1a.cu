// FNV-1a: xor in a byte, multiply by the FNV prime.
extern "C" __global__ void fnv1a(const unsigned char* text, int length, unsigned* hash)
{
    unsigned h = 2166136261u;
    #pragma unroll 1
    for (int i = 0; i < length; ++i)
        h = (h ^ text[threadIdx.x * length + i]) * 16777619u;
    hash[threadIdx.x] = h;
}
