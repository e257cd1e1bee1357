// A node of OpenSearch or Elasticsearch in one process. No distribution of either is on Maven Central, but all that a node needs
// is; `PRODUCT` is replaced by the name of the package.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import org.PRODUCT.common.settings.Settings;
import org.PRODUCT.env.Environment;
import org.PRODUCT.node.Node;
import org.PRODUCT.plugins.Plugin;
import org.PRODUCT.transport.Netty4Plugin;

public class SearchNode extends Node {
    private SearchNode(Environment environment, Collection<Class<? extends Plugin>> plugins) {
        super(environment, plugins, false);
    }

    /** Arguments: the folder for its data, and the ports of HTTP and of the transport. */
    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        for (String folder : List.of("config", "modules", "plugins")) {
            Files.createDirectories(home.resolve(folder));
        }
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("transport.port", arguments[2])
            .put("discovery.type", "single-node")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("node.name", "node")
            .put("node.store.allow_mmap", false)
            // Else it would refuse writes on a disk that is nearly full.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new SearchNode(new Environment(settings, home.resolve("config")), List.of(Netty4Plugin.class)).start();
        Thread.currentThread().join();
    }
}
