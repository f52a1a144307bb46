package io.orbitkv.suite;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Goal: the house is built as ARCHITECTURE.md draws it. Method: every class on the class path is asked what it uses.
 */
class ArrowsTest {
    private static JavaClasses classes;

    @BeforeAll
    static void readClasses() {
        classes = new ClassFileImporter()
                .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                .importPackages("io.orbitkv");
    }

    @Test
    void arrowsPointDown() {
        layeredArchitecture()
                .consideringOnlyDependenciesInLayers()
                .layer("native-io")
                .definedBy("io.orbitkv.nativeio..")
                .layer("index")
                .definedBy("io.orbitkv.index..")
                .layer("tiers")
                .definedBy("io.orbitkv.tiers..")
                .layer("recovery")
                .definedBy("io.orbitkv.recovery..")
                .layer("store")
                .definedBy("io.orbitkv.store..")
                .layer("manager")
                .definedBy("io.orbitkv.manager..")
                .layer("bench")
                .definedBy("io.orbitkv.bench..")
                .layer("cli")
                .definedBy("io.orbitkv.cli..")
                .layer("kit")
                .definedBy("io.orbitkv.kit..")
                .whereLayer("native-io")
                .mayNotAccessAnyLayer()
                .whereLayer("index")
                .mayOnlyAccessLayers("native-io")
                .whereLayer("tiers")
                .mayOnlyAccessLayers("native-io")
                .whereLayer("recovery")
                .mayOnlyAccessLayers("native-io", "index", "tiers")
                .whereLayer("store")
                .mayOnlyAccessLayers("native-io", "index", "tiers", "recovery")
                .whereLayer("manager")
                .mayOnlyAccessLayers("native-io", "index", "recovery", "store")
                .whereLayer("kit")
                .mayOnlyAccessLayers("native-io")
                .whereLayer("cli")
                .mayNotBeAccessedByAnyLayer()
                .check(classes);
    }

    @Test
    void eachOutsideThingHasOneDoor() {
        onlyIn("io.orbitkv.nativeio..", "com.sun.jna..");
        onlyIn("io.orbitkv.index..", "net.openhft..");
        onlyIn("io.orbitkv.index..", "org.lmdbjava..");
        onlyIn("io.orbitkv.cli..", "picocli..");
        onlyIn("io.orbitkv.manager..", "io.micrometer..");
    }

    @Test
    void rawAddressesStayInNativeIo() {
        noClasses()
                .that()
                .resideOutsideOfPackage("io.orbitkv.nativeio..")
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName("org.agrona.UnsafeApi")
                .orShould()
                .dependOnClassesThat()
                .haveFullyQualifiedName("sun.misc.Unsafe")
                .because("bounds live in one place: use MemoryRegion")
                .check(classes);
    }

    @Test
    void librariesDoNotPrint() {
        noClasses()
                .that()
                .resideOutsideOfPackages("io.orbitkv.cli..", "io.orbitkv.kit..")
                .should()
                .accessField(System.class, "out")
                .because("libraries log through SLF4J")
                .check(classes);
    }

    private static void onlyIn(String room, String library) {
        noClasses()
                .that()
                .resideOutsideOfPackage(room)
                .should()
                .dependOnClassesThat()
                .resideInAPackage(library)
                .because(library + " has one door")
                .check(classes);
    }
}
