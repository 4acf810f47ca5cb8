// CRC-32 (as in zip and png), one bit at a time: 32 steps for a message of four bytes.
extern "C" __global__ void crc32_bitwise(const unsigned char* text, unsigned* crc)
{
    const unsigned char* message = text + threadIdx.x * 4;
    unsigned c = 0xffffffffu;
    #pragma unroll 1
    for (int i = 0; i < 4; ++i) {
        c ^= message[i];
        #pragma unroll 1
        for (int bit = 0; bit < 8; ++bit)
            c = (c & 1) ? (c >> 1) ^ 0xedb88320u : c >> 1;
    }
    crc[threadIdx.x] = ~c;
}
