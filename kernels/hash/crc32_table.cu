// CRC-32 by half bytes: the table of 16 remainders sits in constant memory.
__constant__ unsigned table[16] = {
    0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
    0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
};

extern "C" __global__ void crc32_table(const unsigned char* text, unsigned* crc)
{
    const unsigned char* message = text + threadIdx.x * 8;
    unsigned c = 0xffffffffu;
    #pragma unroll 1
    for (int i = 0; i < 8; ++i) {
        c ^= message[i];
        c = table[c & 15] ^ (c >> 4);
        c = table[c & 15] ^ (c >> 4);
    }
    crc[threadIdx.x] = ~c;
}
