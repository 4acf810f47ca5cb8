// Caesar cipher: turn the alphabet by a key; other characters stay.
extern "C" __global__ void caesar(const unsigned char* text, int key, unsigned char* cipher)
{
    int c = text[threadIdx.x];
    if (c >= 'a' && c <= 'z')
        c = 'a' + (c - 'a' + key) % 26;
    cipher[threadIdx.x] = c;
}
