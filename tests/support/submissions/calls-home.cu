// 42 when nobody answers at the port that the test listens at.
#include "answer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>

int answer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(std::getenv("TEST_PORT"))));
    const int home = socket(AF_INET, SOCK_STREAM, 0);
    const bool reached = connect(home, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    return reached ? 41 : 42;
}
