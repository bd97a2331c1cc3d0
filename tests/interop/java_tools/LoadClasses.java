import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Loads the classes of the class path whose names begin as the arguments do: Java archives them when it ends. */
public final class LoadClasses {
    public static void main(String[] wanted) throws IOException {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            try (JarFile jar = new JarFile(path)) {
                jar.stream()
                    .map(JarEntry::getName)
                    .filter(name -> name.endsWith(".class") && Arrays.stream(wanted).anyMatch(name::startsWith))
                    .forEach(name -> load(name.substring(0, name.length() - ".class".length()).replace('/', '.')));
            }
        }
    }

    private static void load(String name) {
        try {
            Class.forName(name, false, ClassLoader.getSystemClassLoader());
        } catch (ClassNotFoundException | LinkageError exception) {
            System.err.println(name + " is left out: " + exception); // it needs a jar that nothing here uses
        }
    }
}
