"""Acts of the serving side, as patterns of its words: the evidence by which reversed roles are found."""

from __future__ import annotations

from agentv.run.users.speech import AGENT_THINGS, USER_ACTS

_HELP = r"(?:help|assist|support)"
_I = r"(?:i|we)(?: have|'ve| will|'ll| can| could| would|'d| am|'m| are|'re| shall| may| might)?"
_ADVERBS = (
    r"(?: (?:now|just|already|also|then|gladly|happily|immediately|certainly|gone ahead and|go ahead and|be able to))*"
)
_SERVE = (
    r"(?:process|issue|initiat|refund|approv|reset|renew|schedul|arrang|reserv|register|draft|submit|creat|set up"
    r"|sign|upgrad|activat|extend|pull up|look (?:up|into)|look (?:it|that|this) up|not(?:e|ed) (?:it|that"
    r"|this)? ?down|format|escalat|waiv|credit|unlock|adjust|found|locat|looked up|pulled up|forward|replac|reschedul"
    r"|updat|look(?:ed)? (?:for|at)|guid|walk|point|enrol|recommend|offer|troubleshoot|tailor|assign|log|prepar|find"
    r"|check|book|cancel|order|plac|add|connect|transfer|putt?)\w*"
)
_DONE = (
    r"(?:process|cancell?|creat|book|confirm|renew|updat|schedul|submit|submitt|approv|refund|reserv|register|activat"
    r"|extend|paus|upgrad|resolv|reset|issu|complet|add|forward|initiat|reschedul|verifi|unlock|record|dispatch"
    r"|not)(?:ed|d)?"
)
_OWNED = (
    r"(?:order|account|customer|booking|member(?:ship)?|policy|reservation|card|contract|personal|(?:delivery"
    r"|shipping|billing|e-?mail)(?= address)|tracking(?= number)|full|first|last|client|patient|insurance|student"
    r"|employee)"
)
_DATA = (
    r"(?:name|address|e-?mail|phone|number|id|details?|date of birth|birthday|availability|budget|income|postcode|zip)"
)
_FRENCH_THINGS = r"(?:abonnement|commande|compte|réservation|colis|rendez-vous|carte|remboursement|contrat|billet)"
_SPANISH_THINGS = r"(?:pedido|cita|reserva|cuenta|suscripción|tarjeta|reembolso|solicitud|contrato|billete)"
_GERMAN_THINGS = r"(?:bestellung|termin|konto|buchung|vertrag|antrag|ticket|rückerstattung|karte|abo|anfrage)"
_ITALIAN_THINGS = r"(?:ordine|appuntamento|prenotazione|abbonamento|rimborso|carta|conto|biglietto|pacco|richiesta)"
_DATUM = (
    r"(?:number|no|id|name|address|code|reference|details?|data|information|digits|date|e-?mail|phone|password|pin)\b"
)
_THEIRS = (
    r"(?:account|order|parcel|package|booking|reservation|refund|claim|application|appointment|warranty|request"
    r"|inquiry|enquiry|complaint|feedback|payment|return|case|password|subscription|membership|rental|prescription)"
)
"""Things of a user that are never those of an agent."""
STRONG = (
    r"i can (?:help|assist)(?: you)? with (?:that|this)\b",
    r"welcome to (?:our|the \w+ (?:service|support|hotline|shop|store|hotel|clinic))|(?:to|for) our attention",
    r"(?:ich|wir) (?:kann|können|könnte) ihnen (?:\w+ ){0,8}(?:anbieten|empfehlen|helfen)\b|virtuelle\w* assistent\w*",
    (
        r"je comprends votre (?:frustration|inquiétude|situation)|(?:sono|soy|je suis) (?:l'|il |la |el |un |una "
        r"|votre )?\w* ?(?:assistente?|asistente|assistant) virtu\w+"
    ),
    (
        r"le ayudo (?:encantad|con)|como? posso (?:esserle|essere) (?:utile|d'aiuto)|me (?:facilita|indica|da"
        r"|proporciona) su (?:número de (?:pedido|cliente|cuenta|reserva)|dni|pedido)|(?:communiquer|indiquer"
        r"|donner) votre numéro de (?:commande|client|dossier)"
    ),
    rf"how (?:else )?(?:can|may|could|might|shall) (?:i|we) (?:{_HELP} you|be of|serve you|{_HELP}\W*$)",
    r"how (?:can|may|could) (?:i|we) (?:help|assist)\b(?! (?:him|her|them|my|our))|what can (?:i|we) do for you",
    rf"(?:can|may|could|shall) (?:i|we) {_HELP} you",
    (
        rf"(?:any|some)thing (?:else )?(?:that )?(?:i|we) (?:can|could|may) (?:{_HELP} you|do for you|(?:{_HELP}"
        r"|do) today)"
    ),
    rf"anything else (?:that )?(?:i|we) can (?:{_HELP}|do)\b(?! (?:to|on|from|in|at|about|myself|ourselves|my)\b)",
    rf"(?:happy|glad|here|pleased|delighted|able|ready) to {_HELP} (?:you|with (?:that|this|your))",
    rf"{_I}{_ADVERBS}(?: be)?(?: here)?(?: love| like| happy| glad| pleased| delighted)?(?: to)? {_HELP} you",
    rf"let (?:me|us) {_HELP} you|be of (?:any |further |some )*(?:assistance|service)\b",
    (
        r"(?:(?<!work\s)(?<!worked\s)(?<!working\s)(?<!job\s)as|i am|i'm|being)(?: just| only)* (?:an?|your"
        r"|the) (?:\w+ )?(?:ai\b|virtual assistant|digital assistant|ai assistant|language model|chat ?bot|bot\b"
        r"|automated|(?:customer )?(?:service|support|care) (?:agent|assistant|represent\w+|team))"
    ),
    (
        r"as (?:your|the) (?:\w+ )?assistant\b|your (?:virtual|digital|personal) assistant|this is \w+ (?:from"
        r"|with) (?:the )?(?:\w+ )?(?:support|service|team)"
    ),
    (
        r"(?:thanks|thank you)(?: so much| very much)? for (?:contacting|calling|choosing|reaching out|being a"
        r"|your (?:interest|inquiry|enquiry|request|order|purchase|loyalty|booking|business|query|application"
        r"|submission))"
    ),
    rf"your (?:\w+ ){{0,2}}{_THEIRS} (?:has|have) (?:now |just |already |successfully )*been (?:successfully )?{_DONE}",
    rf"{_I}{_ADVERBS} (?:{_SERVE}|made a note)\b.{{0,60}}\byour (?:{_THEIRS}|file|record)\b",
    (
        r"(?:i|we)(?:'ll| will|'ve| have| can|'m| am)(?: now| just| also| gladly)* (?:arrang|issu|process|initiat"
        r"|schedul|prepar)\w* (?:an?|the|another) (?:\w+ )?(?:replacement|refund|label|voucher|discount|credit"
        r"|technician|call-?back)"
    ),
    (
        r"verify (?:you\b|who you are|your identity)|(?:what|which)(?:'s| is) your (?:postcode|zip|date of birth"
        r"|birth\w*|surname)"
    ),
    (
        r"(?:ich|wir) (?:\w+ ){0,6}für sie (?:an|ein|um|vor|aus|nach|ab|zu\w*)\b|für sie (?:veranlasst|erledigt"
        r"|gebucht|storniert|angelegt|geprüft|buchen|stornieren|anlegen|prüfen)"
    ),
    (
        r"je vous ai (?:\w+ )?(?:réserv|annul|command|inscri|modifi|rembours|confirm|enregistr)\w+|(?:le|te"
        r"|se lo) he (?:reservado|cancelado|cambiado|anulado|registrado|confirmado|reembolsado)|(?:le|ti"
        r"|l') ?ho (?:prenotato|annullato|spostato|rimborsato|confermato|registrato)|ich habe (?:ihnen |ihren? |den "
        r"|die |das |dir )(?:\w+ ){0,6}(?:reserviert|gebucht|storniert|eingetragen|erstattet|angelegt|freigeschaltet)"
    ),
    r"je vais (?:\w+ )?(?:vérifier|annuler|traiter|procéder) votre",
    rf"your (?:\w+ ){{0,2}}{_THEIRS} (?:is|are) (?:now |all |successfully )+{_DONE}",
    rf"{_I}{_ADVERBS} {_SERVE}\b.{{0,60}}\bfor you\b",
    (
        rf"(?:i|we)(?:'ve| have|'ll| will| can| am going to)?{_ADVERBS} (?:process|issu|initiat|approv|renew|register"
        r"|activat|extend|upgrad|unlock|escalat)\w* (?:your|you)\b"
    ),
    (
        rf"(?:could|can|may|would|will) (?:you|i)(?: please| kindly)* (?:provide|share|confirm|give|have|tell|get"
        rf"|take|verify)(?: me| us)?(?: with)? your {_OWNED}(?: \w+)? {_DATUM}"
    ),
    rf"(?:what|which)(?:'s| is| are)? your {_OWNED} {_DATUM}",
    rf"(?:i|we)(?:'ll| will|'d| would)?(?: also| still| just| only| first)* (?:need|require) your {_OWNED} {_DATUM}",
    (
        rf"please (?:\w+ )?(?:provide|share|confirm|give|tell|enter|state|send)(?: me| us)?(?: with)? your {_OWNED} "
        rf"{_DATUM}"
    ),
    (
        r"(?:i|we)(?: fully| completely| do| totally)* understand (?:your (?:concern|frustration|situation|worry"
        r"|disappointment)|how (?:frustrating|annoying|upsetting))"
    ),
    r"we (?:\w+ )?(?:apologi[sz]e|look forward to (?:welcoming|serving|having)|kindly ask|value your)",
    r"(?:sad|sorry) to see you (?:go|leave)|valued (?:customer|member)",
    r"as a (?:loyal|valued) \w+,? (?:you|we)\b|i'll be (?:your|assisting)",
    (
        rf"would you like (?:me|us) to (?:{_SERVE}|proceed|go ahead|explain|help|assist|walk|show|continue|compare"
        r"|apply|select|calculate|tell you)"
    ),
    (
        r"(?:one of )?our (?:most popular|best ?sell\w+)|our (?:support|service|technical|billing"
        r"|customer) (?:\w+ )?team will\b"
    ),
    (
        rf"let (?:me|us) (?:just |quickly )?(?:look (?:into|up)|check|pull up|process|find|verify"
        rf"|transfer)\b.{{0,50}}\b(?:for you|your (?:\w+ )?{_THEIRS})\b"
    ),
    r"(?:contact|visit) us\b|enjoy your (?:visit|stay|trip|meal|flight|purchase|order)",
    (
        r"you(?:'d| would) like me to (?:help|assist)|if you need (?:any )?(?:further |more |other )?(?:help"
        r"|assistance|support)\b"
    ),
    r"(?:glad|happy|pleased|delighted) to have you|look forward to seeing you again",
    rf"let me know if you(?:'d| would) like me to (?:{_SERVE}|explain|help|assist|walk|show|continue)",
    rf"votre {_FRENCH_THINGS} (?:a|est|sera|va)\b|(?:su|tu) {_SPANISH_THINGS} (?:ha sido|fue|será|está|se ha)\b",
    rf"(?-i:Ihre?) {_GERMAN_THINGS} (?:wurde|ist|wird)\b|(?:il suo|la sua) {_ITALIAN_THINGS} (?:è|sarà)\b",
    (
        r"(?:o seu|a sua) (?:pedido|encomenda|reserva|conta|consulta|cartão|contrato|assinatura) (?:foi|está|será)\b"
        r"|uw (?:bestelling|afspraak|rekening|abonnement|account|pakket) (?:is|wordt|werd)\b"
    ),
    r"let's (?:troubleshoot|get (?:you) (?:sorted|started|set up))|to troubleshoot",
    (
        rf"{_I}{_ADVERBS} (?:switched|signed|put|moved|added|booked|registered|transferred|upgraded|enrolled"
        r"|subscribed) you\b"
    ),
    r"(?:thanks|thank you) for (?:letting us know|providing (?:the|your|that)|sharing your|waiting while|holding)",
    r"(?:wie|womit|was) (?:kann|darf|können|dürfen) (?:ich|wir) (?:ihnen|dir|für sie|euch)",
    (
        r"gerne? helfe (?:ich|wir) (?:ihnen|dir)|ihnen (?:\w+ ){0,3}(?:behilflich|weiterhelfen)"
        r"|kann ich .{0,30}für sie tun"
    ),
    (
        r"(?:vielen dank|danke) für (?:ihre|deine) (?:anfrage|bestellung|interesse|geduld)|haben sie (?:noch "
        r")?weitere fragen"
    ),
    (
        r"benötige(?:n)? (?:ich|wir) (?:noch )?(?:ihren?|deinen?) |(?:nennen|teilen|verraten|bestätigen) sie (?:mir"
        r"|uns) (?:\w+ ){0,3}ihren?\b"
    ),
    (
        r"con (?:mucho )?gusto (?:le|te) |en qué (?:le |te )?puedo ayudar|cómo puedo ayudar|gracias por (?:contactar"
        r"|llamar)"
    ),
    (
        r"(?:puedo|podemos|voy a) ayudar(?:le|te|les)\b|(?:posso|possiamo) aiutar(?:la|ti|vi)\b|(?:posso"
        r"|podemos) ajudá?-?l[oa]\b"
    ),
    (
        r"comment (?:puis-je|est-ce que je peux) vous aider|en quoi puis-je|je (?:peux|vais|serais ravie? de) vous "
        r"aider|merci (?:de nous avoir|pour votre intérêt)"
    ),
    (
        r"come posso aiutar|in cosa posso|posso ajudar|como posso ajudar|hoe kan ik u helpen|waarmee kan ik"
        r"|kan ik u (?:verder )?helpen"
    ),
    r"(?:please )?accept our|(?:can|could) we do to (?:keep|help) you|your mother's maiden name",
)
WEAK = (
    (
        r"that sounds (?:very |really |so |quite |extremely )?(?:uncomfortable|frustrating|annoying|stressful|difficult"
        r"|unpleasant|awful|painful|upsetting)"
    ),
    (
        r"our (?:\w+ )?(?:technicians?|engineers?|specialists?|consultants?|advisors?|couriers?|drivers?|staff"
        r"|nurses?|agents?) (?:will|can|is|are)\b"
    ),
    r"(?:opened|created|raised|filed|logged) (?:an?|the) (?:\w+ )?(?:ticket|case|incident|work order|job) for you",
    (
        rf"\b(?:i(?:'ve| have)|i(?:'ll| will)"
        rf"|i'm going to) (?!{USER_ACTS})\w+[^.!?]{{0,160}}\b(?:your (?!(?:{'|'.join(sorted(AGENT_THINGS))})\b)\w+"
        r"|(?<!thank\x20)(?<!see\x20)(?<!back\x20to\x20)(?<!tell\x20)(?<!told\x20)"
        r"(?<!ask\x20)(?<!like\x20)(?<!as\x20)(?<!let\x20)(?<!with\x20)you\b(?! (?:said|told|asked|wrote|want|need"
        r"|can|could|know)))"
    ),
    (
        r"would you like to (?:book|order|reserve|buy|try|take|go)|we(?: also| still| currently)* have "
        r"\w+.{0,40}\b(?:left|available|in stock|in black)"
    ),
    (
        r"i can (?:explain|clarify) (?:that|this|it)|let me (?:clarify|explain)|want (?:me to|the full|a hand"
        r"|more details)\b"
    ),
    (
        r"(?:^|[.!?] )you (?:could|might want to|may want to|should) (?!know|have|see|be|send|give|do|really|train"
        r"|tell|fix|check|pay|refund)\w+"
    ),
    r"how many (?:people|persons|guests|nights|adults|children) (?:are|will|do) (?:you|in your|there in your|be)",
    (
        r"let me know (?:which|what|when|how) (?:\w+ )?you|i(?:'ll| will) (?:check|see|look) (?:whether|if) (?:we|it"
        r"|there)"
    ),
    (
        r"we can (?:give|offer|provide|arrange|send) you|would (?:that|this|it) be (?:acceptable|suitable|convenient"
        r"|all right with you)"
    ),
    (
        r"let's (?:go through|try|start with|walk through|see if we can)|i'm sorry (?:that )?you(?:'re| are| had"
        r"| have)|sorry for the trouble"
    ),
    (
        r"(?:check|see) your (?:inbox|spam)|we(?:'re| are) (?:aware|currently|working)|was passt ihnen (?:besser"
        r"|am besten)"
    ),
    (
        r"(?:sorry|apologi[sz]e|apologies)(?: for| about)? (?:any|the|this|your) (?:inconvenience|frustration"
        r"|trouble caused)"
    ),
    r"gesture of goodwill|on your behalf|you qualify for|you(?:'re| are) (?:eligible|entitled)|happy to help[!.]",
    (
        rf"your (?:\w+ ){{0,2}}{_THEIRS} (?:was|is|were|are|will|can|has|have|should)(?: be| been| still| now"
        r"| not)* (?!late|missing|wrong|down|broken|the|too|so|a\b)\w+"
    ),
    (
        r"your [\w' -]{3,40} (?:has|have) (?:now |just |already |successfully )*been (?:successfully )?(?:\w{3,}ed"
        r"|sent|paid|made|put)\b"
    ),
    r"have you (?:already |ever )?tried (?:\w+ing|to \w+)\b(?! me| us)|let me know if you(?:'d| would)? like me to",
    (
        r"(?:i|we)(?:'d| would)?(?: strongly| highly)? (?:recommend|suggest|advise)(?: that)? (?:you (?!refund|send"
        r"|give|pay|put|replace|cancel|change|fix|look|waive|train|hire|talk|call|let|offer)|\w+ing your)"
    ),
    (
        r"(?:i|we) can offer you|(?:may|can|could) (?:i|we) offer you|(?:i|we)(?:'ll| will|'ve"
        r"| have)(?: \w+)? (?:send|sent|offer\w*|provid\w*) (?:you )?(?:an?|the|another) (?:\w+ )?(?:replacement"
        r"|refund|label|voucher|discount|credit|link|code)"
    ),
    (
        r"let me know if you (?:have any|need any(?:thing)?(?: \w+)?|need)\b(?!.*\b(?:details?|documents?|info\w*"
        r"|photos?|pictures?|from)\b)"
    ),
    (
        r"(?:feel free to|don't hesitate to|do not hesitate to) (?:ask|reach out|contact|get in touch|call|write"
        r"|let)(?! me (?:at|on|if|under))"
    ),
    (
        r"(?:do|did) you have (?:any )?(?:other|more|further|additional) (?:question|concern|request)s?(?! for (?:me"
        r"|us))|if you have (?:any )?(?:other|more|further|additional)? ?(?:questions|concerns)"
    ),
    (
        r"(?:is there )?anything else (?:you(?:'d| would)? (?:like|want)|you need (?:help|assist))"
        r"|any further (?:assistance|questions)\?"
    ),
    r"(?:verify|confirm|check|validate) your (?:details|account|data|information|eligibility)",
    (
        r"(?:thanks|thank you) for (?:confirming|bringing this|getting in touch)|please (?:call|reach|write to"
        r"|ask) (?:us|our)\b"
    ),
    (
        rf"(?:{_I}{_ADVERBS}) (?:schedul|arrang|submitt?|updat|review|verif)\w* (?:your|you)\b"
        rf"|{_I}{_ADVERBS} looked (?:into|up|at) your"
    ),
    rf"(?:need|require) your {_OWNED}\b|(?:provide|share|confirm)(?: me| us)?(?: with)? your {_OWNED}\b",
    (
        r"(?-i:Ihre[rnms]?) (?:bestell|kunden|auftrags|konto|vertrags|buchungs|versicherungs|telefon"
        r"|sendungs)(?:nummer|daten)\b"
    ),
    (
        r"(?:geben|senden|schicken) sie (?:mir|uns) (?:\w+ )?(?-i:Ihren?|Ihr) (?:kunden|bestell|adresse|geburts"
        r"|namen?|telefon|vertrag|auftrag)|ich (?:schaue|prüfe|sehe) (?:\w+ )*nach"
    ),
    (
        r"ich habe (?:ihren?|deinen?) (?:bestellung|termin|auftrag|konto|buchung|vertrag|antrag|ticket|anfrage"
        r"|rückgabe) \w+(?:t|en)\b"
    ),
    (
        r"(?:votre|vos) (?:numéro de (?:commande|client|dossier|téléphone)|commande|compte|réservation|colis|dossier"
        r"|abonnement|remboursement)\b"
    ),
    r"n'hésitez pas|(?:reste|suis|restons) à votre écoute",
    r"\b(?:su|tu) (?:número de (?:pedido|cliente|cuenta|reserva)|pedido|cuenta|solicitud|reembolso)\b|no dude en",
    (
        r"(?:il|la) su[oa] (?:ordine|nome|numero|prenotazione|richiesta|pacco|rimborso)|non esiti|(?:o |a )?(?:seu"
        r"|sua) (?:pedido|número|encomenda|conta)|uw (?:bestelling|klantnummer|rekening|account)"
    ),
    (
        r"me (?:puede|podría|puedes) (?:indicar|dar|decir|facilitar|proporcionar) su|mi può (?:dire|dare|fornire)"
        r"|pode (?:indicar|dizer)-me o seu|pourriez-vous me (?:donner|indiquer|communiquer|fournir) (?:votre|vos)"
    ),
    r"team will (?:be|get|contact|call|review|look|process|reach|take|send|check|assist|help)\b",
    (
        r"(?:has|have) been (?:successfully |now |already )?(?:resolved|fixed|processed|completed|updated|cancell?ed"
        r"|confirmed|refunded|credited|approved|rescheduled|issued|recorded|registered|noted|logged|scheduled|arranged"
        r"|reactivated|deactivated)"
    ),
    r"(?:i'll|we'll|i will|we will) (?:get|send|bring|ship|deliver) [^.!?]{0,60}\b(?:out )?to you\b|on the house\b",
    r"sorry (?:about|for) (?:the|this|that|our) (?:mix-?up|inconvenience|delay|trouble|mistake|error|wait)",
    rf"(?:shall|should) (?:i|we) {_SERVE} (?:it|that|this|one|them|you)\b|(?:i|we) went ahead and \w+ed",
    (
        r"we have (?:an?|one|two|three|some|several) (?:\w+ ){0,3}(?:table|room|seat|slot|opening|appointment|place"
        r"|spot|car|offer)s? (?:by|at|on|for|left|free|available|from|near|with)\b"
    ),
    (
        r"(?:ich|wir) melden? (?:mich|uns) bei ihnen|(?:ich|wir) haben? [^.!?]{0,40}(?:eingeleitet|veranlasst"
        r"|hinterlegt|erstattet|weitergeleitet)"
    ),
    r"(?:get|come) back to you\b|relevant (?:department|team)|on our (?:end|side)|ready to order",
    rf"(?:so|then|so that)(?: that)? (?:i|we)(?: can|'ll| could| will) {_SERVE}",
    (
        r"(?:slots?|openings?|tables?|rooms?|seats?|appointments?|places?) (?:are |is )?(?:still )?(?:left|available"
        r"|free|open)\b"
    ),
    r"let me know (?:if|whether) (?:it|that|this) (?:work|help|fix|solve)\w*|(?:problem|issue|error) persists",
    r"(?:which|what) (?:\w+ ){1,2}would you (?:like|prefer)",
    (
        r"we (?:have|offer|also have|currently have) (?:it|them|this|openings|several|a few|many|both|different"
        r"|various)"
    ),
    (
        r"please (?:do that|try that|try this) first|(?:could|can) you (?:please )?(?:tell me|describe"
        r"|confirm) the \w+ of your"
    ),
    r"(?:shipped|delivered|dispatched) .{0,30}\bwithin\b|i'm sorry (?:to hear )?(?:you're|you are|that you)",
    (
        r"are you looking for|(?:i|we) should know|(?:you|your \w+) need (?:help|assistance)"
        r"|do you have any (?:allerg|prefer)"
    ),
    r"you (?:could|can|may|might want to|may want to|should)(?: also)? try|it sounds like|sent to you\b",
    r"would you prefer|i understand (?:this|that|it) (?:can|must|is)",
    r"please (?:try|reinstall|restart|make|hold) (?!again)|you(?:'ll| will| should)(?: \w+)? (?:be|see|receive|get) ",
    r"(?:i'll|i will|i can|let me) (?:suggest|recommend|calculate)",
    r"bring (?:it|them|him|her|your \w+) (?:in|along|to us)|don't forget to|remember to|let me know if you need",
    r"(?:corrected|fixed|adjusted|updated|changed) (?:the|your|it)\b(?=.*\b(?:you|your)\b)",
    r"(?:i'd|i would|we|we'd|i)(?: strongly| highly)? (?:recommend|suggest|advise|encourage)\b",
    (
        r"you(?:'ll| will| should)(?: then| also| shortly| soon)* (?:receive|get a|be (?:notified|contacted|charged)"
        r"|hear from us)"
    ),
    (
        r"for (?:your safety|security reasons|your convenience|further)|(?:based on|according to) (?:your|what you)"
        r"|rest assured"
    ),
    (
        r"(?:great|good|excellent|lovely|wonderful|nice) (?:question|choice|to hear)|what an? \w+ choice"
        r"|certainly[!,]|absolutely!"
    ),
    r"i'm (?:so |very |really )?(?:sorry|glad|happy) (?:to hear|that you|you(?:'re| are)? |about your)|i hear you",
    (
        r"(?:once|when|after|before|as soon as|since|if) you(?:'ve|'d| have| had)? (?!like|want|need|could|can|agree"
        r"|don't|do not|see|ask|prefer|would|mind|wish|know|must|look|think|had|have|send|give|tell|get|it\b|that"
        r"|one\b|any|the\b|them|some)\w+"
    ),
    (
        r"you(?:'re| are) (?:covered|eligible|entitled|insured|all set|registered|welcome to)|you(?:'ll"
        r"| will) (?:hear|find|need|see|be|have)\b"
    ),
    (
        r"your (?:request|inquiry|enquiry|concerns?|complaint|needs|preferences?|situation|convenience|experience"
        r"|issue)\b"
    ),
    (
        r"(?:our |all )?(?:customers|visitors|children|patients|members|guests|students|passengers|tenants|users"
        r"|people) (?:can(?!'t)|may|should|must|usually|often|have to|need to|are (?:asked|advised|required|kindly))"
    ),
    (
        r"(?:here is|here's|here are) (?:a|an|the|some|your|how)\b|ready for (?:pick-?up|collection)|free of charge"
        r"|for you\b"
    ),
    (
        r"(?:thanks|thank you) for (?:that|the|this) (?:information|info|details|clarification)"
        r"|what would you (?:like|prefer)|suits? you\b"
    ),
    r"let me (?:run|walk|explain|guide|connect|transfer|pull|verify|arrange|take you|put you|assure)|i speciali[sz]e",
    (
        r"please (?:bring|arrive|remember|do not|don't|contact|use|wait|complete|fill|visit|refer|enter|provide"
        r"|submit|be)\b"
    ),
    (
        r"(?:have|did) you (?:already |ever )?(?:tried|try|checked|check|restarted|noticed|considered|used)"
        r"|how (?:long|often) (?:have|do) you"
    ),
    (
        r"(?:does|would|will) (?:that|this|it|\w+day)(?: \w+){0,3} (?:work|suit|be (?:ok|okay|fine"
        r"|convenient)) (?:for )?you"
    ),
    (
        r"(?:will|to) be (?:\w+ )?(?:delivered|shipped|charged|dispatched|processed|credited|refunded|contacted"
        r"|sent (?:out )?to you)"
    ),
    (
        r"within (?:\w+ )?(?:\w+ )?(?:business|working) days|confirmation (?:e-?mail|will|by)|(?:can|will) (?:see"
        r"|call|contact|reach) you\b"
    ),
    (
        r"(?:start|begin) by \w+ing|(?:follow|complete|repeat) (?:these|the following|the) steps|(?:click|tap|press"
        r"|hold|select|enter) (?:on )?the"
    ),
    (
        r"(?:when|where|how) (?:did|do|would|will) you (?:buy|purchase|notice|like|be|want|plan|use)|for (?:security"
        r"|verification)"
    ),
    r"you're (?:very |most )?welcome(?=[!.] \S)|no problem(?: at all)?(?=[!,.] .*\b(?:you|your)\b)",
    (
        rf"(?:may|can|could) i (?:please )?(?:have|get|ask for|take|know) your|(?:what|which)(?:'s| is"
        rf"| are) your {_DATA}"
    ),
    (
        r"(?:could|can|would|will) you(?: please| kindly)* (?:provide|share|confirm|give|tell|describe)(?: me"
        r"| us)?(?: with)? (?:your|the \w+ in more detail|a (?:bit|little) more)"
    ),
    (
        r"(?:when|what time|which day)(?: \w+)? would (?:it|that|you)\b.{0,25}\b(?:convenient|suit you|work for you"
        r"|like|prefer)"
    ),
    r"(?:convenient|suitable|best|work) for you\s*\?|let me know your (?:availability|preference)|do you prefer\b",
    (
        r"would you like (?:to|more|an?|some|the)\b|which (?:one )?(?:may|can|shall) i\b|shall i (?:go ahead|add|book"
        r"|place|proceed)"
    ),
    (
        r"(?:first|next|then),? (?:please )?(?:tell me|check|make sure|try|open)|let me know how (?:that|it) (?:goes"
        r"|went|works)"
    ),
    r"(?:i|we)(?:'ll| will|'d| would)? (?:also |still |just )?need (?:to know|you to|some|a few|more)\b",
    rf"(?:i|we)(?:'ve| have|'ll| will| can)(?:{_ADVERBS}) {_SERVE} (?:you|your)\b",
    r"to (?:process|complete|proceed with|finali[sz]e|look into|help) (?:your|this|the|you)\b",
    (
        r"(?:options|appointments|places|seats|slots|sessions) are (?:still )?(?:available|open)|(?:is"
        r"|are) available (?:for|on|from)"
    ),
    (
        r"(?:happy|glad|pleased|delighted) to (?!hear|pay|wait|see|know)\w+|(?:point|direct|refer) you to"
        r"|may i\b.{0,30}\byou"
    ),
    (
        r"you (?:don't|do not|won't|will not|only|would) need (?:an?|to)\b|you(?:'re| are) (?:all set|good to go"
        r"|covered)"
    ),
)
